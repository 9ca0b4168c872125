#include "livepool/eager/planning_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace livepool {
namespace {

TEST(PlanningThreadTest, RunsJobsInOrder) {
  PlanningThread thread;
  std::vector<int> done;  // by one thread, and read after Wait
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(thread.Submit([&done, i] { done.push_back(i); }));
  thread.Wait();
  ASSERT_EQ(done.size(), 20U);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(done[static_cast<std::size_t>(i)], i);
}

TEST(PlanningThreadTest, RefusesWhatIsTooMuch) {
  PlanningThread thread(/*capacity=*/2);
  std::promise<void> go;
  std::atomic<int> done = 0;
  EXPECT_TRUE(thread.Submit([&] { go.get_future().wait(); }));
  EXPECT_TRUE(thread.Submit([&] { ++done; }));
  EXPECT_FALSE(thread.Submit([&] { ++done; }));
  go.set_value();
  thread.Wait();
  EXPECT_EQ(done, 1);
  EXPECT_TRUE(thread.Submit([&] { ++done; }));
  thread.Wait();
  EXPECT_EQ(done, 2);
}

TEST(PlanningThreadTest, StopsWithoutTheJobsThatHaveNotBegun) {
  PlanningThread thread;
  std::promise<void> begun;
  std::atomic<bool> second = false;
  EXPECT_TRUE(thread.Submit([&] {
    begun.set_value();
    while (!thread.stopping()) std::this_thread::yield();
  }));
  EXPECT_TRUE(thread.Submit([&] { second = true; }));
  begun.get_future().wait();
  thread.Stop();
  EXPECT_FALSE(second);
  EXPECT_FALSE(thread.Submit([] {}));
  thread.Wait();  // returns
}

}  // namespace
}  // namespace livepool
