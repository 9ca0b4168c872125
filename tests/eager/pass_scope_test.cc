// livepool::PassScope as a LibTorch application uses it, on the CPU.
#include "livepool/torch/pass_scope.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "livepool/base/error.h"
#include "livepool/pool/thread_state.h"
#include "livepool/torch/install.h"

namespace livepool {
namespace {

class PassScopeTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { Install(DeviceId::Kind::kHost); }

  static c10::DataPtr Allocate(std::size_t size) { return c10::GetAllocator(c10::kCPU)->allocate(size); }
  static bool Served(const c10::DataPtr& data) { return PoolOf({}).Find(data.get()) != nullptr; }

  // A chain of six buffers, each alive with the one before. How many were served. Not inlined, as a call from elsewhere
  // would be another site then.
  [[gnu::noinline]] int Body() {
    int served = 0;
    c10::DataPtr last;
    for (std::size_t i = 1; i <= 6; ++i) {
      c10::DataPtr next = Allocate(1000 * i);
      served += Served(next) ? 1 : 0;
      last = std::move(next);
    }
    return served;
  }
  [[gnu::noinline]] int Run() {
    const PassScope scope(name_);
    return Body();
  }
  [[gnu::noinline]] int RunTwice(const std::string& outer_name) {
    const PassScope outer(outer_name);
    int served = Body();
    const PassScope again(outer_name);  // nothing
    EXPECT_EQ(Run(), 6);
    served += Body();
    return served;
  }
  void Learn() {
    for (int i = 0; i < 3; ++i) {
      Run();
      WaitForPlans();
    }
  }

  const std::string name_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(PassScopeTest, LaterPassesAreServed) {
  EXPECT_EQ(Run(), 0);
  WaitForPlans();
  EXPECT_EQ(Run(), 3) << "four matches in a row come first";
  EXPECT_EQ(Run(), 6);
  EXPECT_EQ(Body(), 0) << "outside";
  EXPECT_EQ(StatsOfScope(name_).passes, 3);
  EXPECT_EQ(StatsOfScope(name_).hits, 9);
  EXPECT_EQ(StatsOfScope("nobody"), ScopeStats());
}

TEST_F(PassScopeTest, EndsByAnException) {
  Learn();
  try {
    const PassScope scope(name_);
    EXPECT_EQ(Body(), 6);
    throw std::runtime_error("the program's own");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(CurrentThread().pass, nullptr);
  EXPECT_EQ(CurrentThread().sink, nullptr);
  EXPECT_EQ(Run(), 6);
  EXPECT_EQ(StatsOfScope(name_).kinds, 1);
}

TEST_F(PassScopeTest, EndsEarlyAndOnce) {
  Learn();
  PassScope scope(name_);
  EXPECT_EQ(Body(), 6);
  scope.End(/*failed=*/false);
  EXPECT_EQ(Body(), 0);
  scope.End(/*failed=*/false);
}

TEST_F(PassScopeTest, InnerScopesServeAndTheOuterGoesOn) {
  Learn();
  const std::string outer_name = name_ + " outer";
  for (int i = 0; i < 3; ++i) {
    RunTwice(outer_name);
    WaitForPlans();
  }
  EXPECT_EQ(RunTwice(outer_name), 12);
  EXPECT_EQ(StatsOfScope(outer_name).passes, 4);
}

TEST_F(PassScopeTest, EndsInAnyOrder) {
  Learn();
  std::optional<PassScope> first(std::in_place, name_);
  std::optional<PassScope> second(std::in_place, name_ + " second");
  std::optional<PassScope> third(std::in_place, name_ + " third");
  second.reset();
  first.reset();
  third.reset();
  EXPECT_EQ(CurrentThread().pass, nullptr);
  EXPECT_EQ(CurrentThread().sink, nullptr);
  EXPECT_EQ(Run(), 6);
}

TEST_F(PassScopeTest, IsLeftByItsThreadOnly) {
  PassScope scope(name_);
  std::thread([&] { EXPECT_THROW(scope.End(false), Error); }).join();
  EXPECT_NE(CurrentThread().pass, nullptr);
}

TEST_F(PassScopeTest, DoesNothingWhileAGraphIsRecorded) {
  class IgnoringSink final : public TraceSink {
    void OnAlloc(DeviceId, const void*, Bytes, StreamHandle) override {}
    void OnFree(DeviceId, const void*) override {}
  } sink;
  Learn();
  {
    const RecordingScope recording(sink);
    EXPECT_EQ(Run(), 0);
    EXPECT_EQ(CurrentThread().sink, &sink);
  }
  std::optional<PassScope> scope(std::in_place, name_);
  {
    const RecordingScope recording(sink);
    EXPECT_EQ(Body(), 0);
    EXPECT_THROW(scope->End(false), Error);
  }
  EXPECT_NE(CurrentThread().pass, nullptr) << "the pass goes on";
  scope.reset();
  EXPECT_EQ(Run(), 6);
}

}  // namespace
}  // namespace livepool
