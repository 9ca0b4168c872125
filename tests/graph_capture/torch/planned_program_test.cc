// The search for a better plan after a capture, on the CPU. How plans are swapped:
// tests/graph_capture/served_plan_test.cc.
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "allocator/plan/test_problems.h"
#include "livepool/livepool.h"
#include "livepool/plan/planner.h"

namespace livepool {
namespace {

constexpr std::int64_t kUnit = 64;  // bytes: the CPU's alignment

// A problem that the quick plan of a capture does not solve, but the search soon does.
std::optional<Problem> HardProblem() {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Problem problem = testing::RandomProblem(seed, {.buffers = 100, .times = 50, .max_size = 1000});
    const Plan quick = MakePlan(problem);
    if (!quick.ProvedOptimal() && MakePlan(problem, {.search_nodes = 20'000}).height < quick.height) return problem;
  }
  return std::nullopt;
}

// The problems stand for themselves: their buffers are constants, and made in a bad order.
const CaptureOptions kAsRecorded{.fold_constants = false, .order_for_memory = false};

// A callable whose tensors live as the buffers of `problem` do: made by one op, read last by another, which writes into
// what it returns and so makes no tensor itself.
Callable PassOf(const Problem& problem) {
  return [problem](const Tensors& in) {
    at::Tensor sum = in[0].clone();
    std::vector<at::Tensor> tensors(problem.buffers.size());
    for (Time now = 0; now <= 200; ++now) {
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (problem.buffers[i].lifetime.death != now) continue;
        sum.add_(tensors[i].narrow(0, 0, sum.numel()));
        tensors[i] = at::Tensor();
      }
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        if (problem.buffers[i].lifetime.birth != now) continue;
        tensors[i] = at::full({problem.buffers[i].size * kUnit / 4}, static_cast<double>(i + 1), in[0].options());
      }
    }
    return Tensors{sum};
  };
}

class PlannedProgramTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { Install(DeviceId::Kind::kHost); }
  static void WaitForSearch(const ExecGraph& graph) {
    while (graph.Report().searching) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  c10::NoGradGuard no_grad_;
};

TEST_F(PlannedProgramTest, TheSearchGoesOnAfterTheCaptureAndTheArenaShrinks) {
  const std::optional<Problem> hard = HardProblem();
  ASSERT_TRUE(hard) << "the quick plan solves all of these now: take harder ones";
  const Callable pass = PassOf(*hard);
  const auto graph = Capture(pass, {at::randn({16})}, kAsRecorded);
  const GraphReport before = graph->Report();
  ASSERT_GT(before.arena_bytes, before.lower_bound_bytes);
  EXPECT_TRUE(before.searching);
  const auto replays_right = [&] {
    const at::Tensor x = at::randn({16});
    EXPECT_TRUE(graph->Replay({x})[0].equal(pass({x})[0]));
  };
  replays_right();
  WaitForSearch(*graph);
  for (int i = 0; i < 3; ++i) replays_right();
  const GraphReport after = graph->Report();
  EXPECT_LT(after.arena_bytes, before.arena_bytes);
  EXPECT_EQ(after.lower_bound_bytes, before.lower_bound_bytes);
  EXPECT_FALSE(after.searching);
  EXPECT_EQ(after.misses, 0);
  EXPECT_EQ(after.algorithm, "depth-first search");
  EXPECT_EQ(PoolOf({}).Stats().arena_bytes, AlignUp(after.arena_bytes, PoolOf({}).backend().Granularity()));
  // Another capture comes to the same plan.
  const auto again = Capture(pass, {at::randn({16})}, kAsRecorded);
  EXPECT_EQ(again->Report().arena_bytes, before.arena_bytes);
  WaitForSearch(*again);
  again->Replay({at::randn({16})});
  EXPECT_EQ(again->Report().arena_bytes, after.arena_bytes);
}

TEST_F(PlannedProgramTest, NoSearchIfTheOptionIsOff) {
  const std::optional<Problem> hard = HardProblem();
  ASSERT_TRUE(hard);
  const auto graph = Capture(PassOf(*hard), {at::randn({16})},
                             {.fold_constants = false, .order_for_memory = false, .search_in_background = false});
  EXPECT_GT(graph->Report().arena_bytes, graph->Report().lower_bound_bytes);
  EXPECT_FALSE(graph->Report().searching);
}

TEST_F(PlannedProgramTest, NoSearchForAGraphAtTheBound) {
  const auto graph = Capture(PassOf(testing::HandMade("Chain")), {at::randn({16})}, kAsRecorded);
  EXPECT_EQ(graph->Report().arena_bytes, graph->Report().lower_bound_bytes);
  EXPECT_FALSE(graph->Report().searching);
}

}  // namespace
}  // namespace livepool
