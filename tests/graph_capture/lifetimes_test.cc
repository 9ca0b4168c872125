#include "livepool/graph/lifetimes.h"

#include <gtest/gtest.h>

#include "graph_capture/test_graphs.h"

namespace livepool {
namespace {

using testing::GraphBuilder;
using testing::LifetimesOf;
using testing::OutputsOnly;
using testing::Record;
using testing::Recorded;
using testing::Step;
using testing::Steps;
using Kind = Step::Kind;

//   event  0 1 2   3 4 5   6     7 8 9   10
//          ( a )   ( b )   ~a    ( c )   ~b    a is dropped after op 1, b after op 2, c is an output
TEST(LifetimesTest, ABufferDiesAtTheEndOfTheLastOpThatUsesIt) {
  GraphBuilder g;
  const ValueId a = g.Tensor({16}), b = g.Tensor({16}), c = g.Tensor({16});
  g.Op("make", {}, {a});
  g.Op("use", {a}, {b});
  g.Op("use", {b}, {c});
  g.graph.outputs = {c};
  const auto lifetimes = LifetimesOf(g.graph, Record(g.graph, OutputsOnly(g.graph)));
  ASSERT_EQ(lifetimes.size(), 3U);
  EXPECT_EQ(lifetimes[0], (BufferLifetime{.allocation = 0, .storage = 0, .lifetime = {1, 6}}));
  EXPECT_EQ(lifetimes[1], (BufferLifetime{.allocation = 1, .storage = 1, .lifetime = {4, 10}}));
  EXPECT_TRUE(lifetimes[2].upstream) << "it escapes";
  EXPECT_TRUE(lifetimes[0].lifetime.Overlaps(lifetimes[1].lifetime)) << "an op reads a and writes b";
}

//   op 1: w1 = alloc; y = alloc; free w1; w2 = alloc; z = alloc; free w2
//   w1 and w2 may share bytes; neither may share with y, z, or the input.
TEST(LifetimesTest, InsideAnOpTheRecordedOrderIsKept) {
  GraphBuilder g;
  const ValueId x = g.Tensor({16}), y = g.Tensor({16}), z = g.Tensor({16}), out = g.Tensor({16});
  g.Op("make", {}, {x});
  g.Op("conv", {x}, {y, z});
  g.Op("sum", {y, z}, {out});
  g.graph.outputs = {out};
  Steps steps = OutputsOnly(g.graph);
  steps[1] = {{Kind::kAllocWorkspace, 0, 64},
              {Kind::kAllocStorage, g.graph.value(y).storage, 64},
              {Kind::kFreeWorkspace, 0, 0},
              {Kind::kAllocWorkspace, 1, 64},
              {Kind::kAllocStorage, g.graph.value(z).storage, 64},
              {Kind::kFreeWorkspace, 1, 0}};
  const auto lifetimes = LifetimesOf(g.graph, Record(g.graph, steps));
  const auto overlap = [&](std::size_t i, std::size_t k) {
    return lifetimes[i].lifetime.Overlaps(lifetimes[k].lifetime);
  };
  constexpr std::size_t kX = 0, kW1 = 1, kY = 2, kW2 = 3, kZ = 4;
  EXPECT_EQ(lifetimes[kW1].storage, -1);
  EXPECT_FALSE(overlap(kW1, kW2));
  EXPECT_FALSE(overlap(kW1, kZ)) << "z comes after w1 is gone";
  for (const auto& [i, k] :
       {std::pair{kX, kW1}, {kX, kY}, {kX, kW2}, {kX, kZ}, {kW1, kY}, {kY, kW2}, {kW2, kZ}, {kY, kZ}}) {
    EXPECT_TRUE(overlap(i, k)) << i << ", " << k;
  }
}

// The calibration has freed x inside the op already (the op took it over), but a fused op may still read it.
TEST(LifetimesTest, InputsAndOutputsOfOneOpOverlapWhateverWasSeen) {
  GraphBuilder g;
  const ValueId x = g.Tensor({16}), y = g.Tensor({16});
  g.Op("make", {}, {x});
  g.Op("fused", {x}, {y});
  g.Op("use", {y}, {});
  Trace trace;
  using Event = TraceEvent::Kind;
  trace.events = {{Event::kOpBegin, 0}, {Event::kAlloc, 0}, {Event::kOpEnd, 0}, {Event::kOpBegin, 1},
                  {Event::kFree, 0},    {Event::kAlloc, 1}, {Event::kOpEnd, 1}, {Event::kOpBegin, 2},
                  {Event::kOpEnd, 2},   {Event::kFree, 1}};
  trace.allocations = {{.size = 64, .op = 0, .birth = 1, .death = 4}, {.size = 64, .op = 1, .birth = 5, .death = 9}};
  trace.ops = 3;
  const auto lifetimes = ComputeLifetimes(g.graph, trace, {0, 1});
  EXPECT_EQ(lifetimes[0].lifetime, (Lifetime{1, 7})) << "to the end of op 1, which is event 6";
  EXPECT_TRUE(lifetimes[0].lifetime.Overlaps(lifetimes[1].lifetime));
}

TEST(LifetimesTest, AUseThroughAViewCounts) {
  GraphBuilder g;
  const ValueId a = g.Tensor({16});
  const ValueId v = g.View(a, {8}, {1});
  const ValueId b = g.Tensor({16}), c = g.Tensor({16});
  g.Op("make", {}, {a});
  g.Op("view", {a}, {v});
  g.Op("make", {}, {b});
  g.Op("use", {v}, {c});
  const auto lifetimes = LifetimesOf(g.graph, Record(g.graph, OutputsOnly(g.graph)));
  EXPECT_TRUE(lifetimes[0].lifetime.Overlaps(lifetimes[1].lifetime));
  EXPECT_TRUE(lifetimes[0].lifetime.Overlaps(lifetimes[2].lifetime));
}

// A view of an escaping storage is enough to make it escape.
TEST(LifetimesTest, AnOutputThatIsAViewKeepsItsStorage) {
  GraphBuilder g;
  const ValueId a = g.Tensor({16});
  const ValueId v = g.View(a, {8}, {1});
  g.Op("make", {}, {a});
  g.Op("view", {a}, {v});
  g.graph.outputs = {v};
  EXPECT_TRUE(LifetimesOf(g.graph, Record(g.graph, OutputsOnly(g.graph)))[0].upstream);
}

class OneBufferTest : public ::testing::Test {
 protected:
  OneBufferTest() {
    const ValueId a = g_.Tensor({16});
    g_.Op("make", {}, {a});
    g_.Op("use", {a}, {});
    recorded_ = Record(g_.graph, OutputsOnly(g_.graph));
  }
  BufferLifetime Lifetime() { return LifetimesOf(g_.graph, recorded_)[0]; }
  GraphBuilder g_;
  Recorded recorded_;
};

TEST_F(OneBufferTest, IsPlanned) { EXPECT_FALSE(Lifetime().upstream); }

TEST_F(OneBufferTest, OnAnotherStreamGoesUpstream) {
  recorded_.trace.allocations[0].same_stream = false;
  EXPECT_TRUE(Lifetime().upstream);
}

TEST_F(OneBufferTest, MadeBetweenOpsGoesUpstream) {
  recorded_.trace.allocations[0].op = -1;
  EXPECT_TRUE(Lifetime().upstream);
}

TEST_F(OneBufferTest, KeptBySomebodyGoesUpstream) {
  recorded_.trace.allocations[0].death = TraceAllocation::kNeverFreed;
  EXPECT_TRUE(Lifetime().upstream);
}

// Though the calibration has freed it: the caller gets the replay's outputs, not the calibration's.
TEST_F(OneBufferTest, AnOutputGoesUpstreamWhateverWasSeen) {
  g_.graph.outputs = {0};
  EXPECT_TRUE(Lifetime().upstream);
}

// A pass whose caller copies the outputs out: they have slots, and keep them to the end.
TEST_F(OneBufferTest, AnOutputInTheArenaLivesToTheEnd) {
  g_.graph.outputs = {0};
  g_.graph.outputs_in_arena = true;
  EXPECT_FALSE(Lifetime().upstream);
  EXPECT_EQ(Lifetime().lifetime.death, static_cast<Time>(recorded_.trace.events.size()));
  recorded_.trace.allocations[0].death = TraceAllocation::kNeverFreed;
  EXPECT_FALSE(Lifetime().upstream);
  recorded_.trace.allocations[0].same_stream = false;
  EXPECT_TRUE(Lifetime().upstream);
}

TEST_F(OneBufferTest, SeenToLiveLongerLivesLonger) {
  recorded_.trace.allocations[0].death = 1000;
  EXPECT_EQ(Lifetime().lifetime.death, 1000);
}

}  // namespace
}  // namespace livepool
