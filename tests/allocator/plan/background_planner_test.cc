#include "livepool/plan/background_planner.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "allocator/plan/test_problems.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

using std::chrono::steady_clock;

// No end of it is in sight: the bound is not reached, and the budget is not to be used up.
Problem EndlessProblem() { return testing::RandomProblem(0, {.buffers = 1500, .times = 1500, .max_size = 1'000'000}); }
constexpr PlannerOptions kEndless{.search_nodes = INT64_MAX};

Plan PoorPlan(const Problem& problem) { return MakeBaselinePlan(problem, BaselineRule::kWholeSlots); }

void WaitFor(const BackgroundPlanner& planner) {
  while (!planner.Done()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(BackgroundPlanner, FindsTheSamePlanAsInTheForeground) {
  const Problem problem = testing::RandomProblem(3, {.buffers = 100, .times = 50, .max_size = 1000});
  const PlannerOptions options{.search_nodes = 5000};
  BackgroundPlanner planner(problem, PoorPlan(problem).height, options);
  WaitFor(planner);
  const std::optional<Plan> plan = planner.Take();
  EXPECT_EQ(plan, MakePlan(problem, options));
  EXPECT_EQ(planner.Take(), std::nullopt) << "it was taken already";
}

TEST(BackgroundPlanner, GivesNothingThatIsNotLower) {
  const Problem problem = testing::HandMade("AboveTheBound");
  BackgroundPlanner planner(problem, 10, {});
  WaitFor(planner);
  EXPECT_EQ(planner.Take(), std::nullopt);
}

// Nobody waits when it goes, at whatever point of the search, and the turn is free soon after.
TEST(BackgroundPlanner, StopsAtOnce) {
  const Problem endless = EndlessProblem();
  const Problem quick = testing::HandMade("WholeSlotsWin");
  for (const int ms : {0, 1, 20, 200}) {
    SCOPED_TRACE(std::to_string(ms) + " ms");
    auto planner = std::make_unique<BackgroundPlanner>(endless, Bytes{0}, kEndless);
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    EXPECT_FALSE(planner->Done());
    const auto start = steady_clock::now();
    planner.reset();
    EXPECT_LT(steady_clock::now() - start, std::chrono::milliseconds(500));
    BackgroundPlanner next(quick, 100, {});
    WaitFor(next);  // else the test runs into its time limit
    EXPECT_EQ(next.Take()->height, 13);
  }
}

// Those that wait for their turn stop too, and whoever is left gets it.
TEST(BackgroundPlanner, OneSearchAtATime) {
  const Problem quick = testing::HandMade("WholeSlotsWin");
  auto first = std::make_unique<BackgroundPlanner>(EndlessProblem(), Bytes{0}, kEndless);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // it has the turn
  std::vector<std::unique_ptr<BackgroundPlanner>> others;
  for (int i = 0; i < 4; ++i)
    others.push_back(std::make_unique<BackgroundPlanner>(quick, Bytes{100}, PlannerOptions{}));
  others.pop_back();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (const auto& each : others) EXPECT_FALSE(each->Done());
  first.reset();
  for (const auto& each : others) {
    WaitFor(*each);
    EXPECT_EQ(each->Take()->height, 13);
  }
}

TEST(BackgroundPlanner, TakesAnErrorToWhoTakesThePlan) {
  Problem malformed = testing::HandMade("Chain");
  malformed.buffers[0].size = 0;
  BackgroundPlanner planner(malformed, 100, {});
  WaitFor(planner);
  EXPECT_THROW((void)planner.Take(), InvalidInput);
}

// A fork copies the object, but not its thread.
TEST(BackgroundPlanner, AForkedChildNeedNotWait) {
  auto planner = std::make_unique<BackgroundPlanner>(EndlessProblem(), Bytes{0}, kEndless);
  const pid_t child = fork();
  if (child == 0) {
    planner.reset();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// exit() while a search runs in an object that nobody destroys.
TEST(BackgroundPlannerDeathTest, TheProcessEndsAtOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        new BackgroundPlanner(EndlessProblem(), Bytes{0}, kEndless);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        std::exit(7);
      },
      ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace livepool
