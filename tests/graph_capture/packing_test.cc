#include "livepool/graph/packing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph_capture/test_graphs.h"
#include "livepool/plan/planner.h"

namespace livepool {
namespace {

using ::testing::ElementsAre;

// Sizes 100, 64, 100, and one that escapes; op 1 makes nothing, op 3 is the last.
class PackingTest : public ::testing::Test {
 protected:
  PackingTest() {
    trace_.ops = 4;
    trace_.allocations = {{.size = 100, .op = 0, .nth = 0, .birth = 1, .death = 6},
                          {.size = 64, .op = 0, .nth = 1, .birth = 2, .death = 3},
                          {.size = 100, .op = 2, .nth = 0, .birth = 5, .death = 9},
                          {.size = 8, .op = 2, .nth = 1, .birth = 6},
                          {.size = 8, .op = -1, .birth = 8, .death = 9}};
    for (std::size_t i = 0; i < trace_.allocations.size(); ++i) {
      const TraceAllocation& allocation = trace_.allocations[i];
      lifetimes_.push_back({.allocation = static_cast<AllocationIndex>(i),
                            .lifetime = {allocation.birth, allocation.death},
                            .upstream = i >= 3});
    }
  }
  Trace trace_;
  std::vector<BufferLifetime> lifetimes_;
};

TEST_F(PackingTest, MakesOneBufferForEachPlannedAllocation) {
  const Packing packing = MakePacking(lifetimes_, {}, trace_, 64);
  EXPECT_THAT(packing.buffer_of, ElementsAre(0, 1, 2, -1, -1));
  EXPECT_THAT(packing.problem.buffers, ElementsAre(Buffer{.id = 0, .lifetime = {1, 6}, .size = 128, .alignment = 64},
                                                   Buffer{.id = 1, .lifetime = {2, 3}, .size = 64, .alignment = 64},
                                                   Buffer{.id = 2, .lifetime = {5, 9}, .size = 128, .alignment = 64}));
}

TEST_F(PackingTest, RoundsToTheAlignmentOfTheDevice) {
  const Packing packing = MakePacking(lifetimes_, {}, trace_, 512);
  for (const Buffer& buffer : packing.problem.buffers) {
    EXPECT_EQ(buffer.size, 512);
    EXPECT_EQ(buffer.alignment, 512);
  }
}

TEST_F(PackingTest, AChainIsOneBuffer) {
  const std::vector<InPlacePair> pairs{{.op = 2, .input = 0, .predecessor = 0, .successor = 2}};
  const Packing packing = MakePacking(lifetimes_, pairs, trace_, 64);
  EXPECT_THAT(packing.buffer_of, ElementsAre(0, 1, 0, -1, -1));
  EXPECT_THAT(packing.problem.buffers, ElementsAre(Buffer{.id = 0, .lifetime = {1, 9}, .size = 128, .alignment = 64},
                                                   Buffer{.id = 1, .lifetime = {2, 3}, .size = 64, .alignment = 64}));
}

TEST_F(PackingTest, ALongChainGrowsLinkByLink) {
  lifetimes_[1].lifetime = {5, 9};
  lifetimes_[2].lifetime = {8, 20};
  const std::vector<InPlacePair> pairs{{.op = 0, .predecessor = 0, .successor = 1},
                                       {.op = 2, .predecessor = 1, .successor = 2}};
  const Packing packing = MakePacking(lifetimes_, pairs, trace_, 64);
  EXPECT_THAT(packing.buffer_of, ElementsAre(0, 0, 0, -1, -1));
  ASSERT_EQ(packing.problem.buffers.size(), 1U);
  EXPECT_EQ(packing.problem.buffers[0].lifetime, (Lifetime{1, 20}));
}

TEST_F(PackingTest, TheTableIsKeyedByOpAndPosition) {
  const std::vector<InPlacePair> pairs{{.op = 2, .input = 0, .predecessor = 0, .successor = 2}};
  const Packing packing = MakePacking(lifetimes_, pairs, trace_, 64);
  const Plan plan = MakePlan(packing.problem);
  const SlotTable table = MakeSlotTable(packing, plan, pairs, trace_, 64);
  EXPECT_NO_THROW(table.Check());
  EXPECT_EQ(table.ops(), 4U);
  EXPECT_THAT(table.first_of_op, ElementsAre(0, 2, 2, 4, 4));
  EXPECT_THAT(table.allocations,
              ElementsAre(PlannedAllocation{.size = 128, .range = 0}, PlannedAllocation{.size = 64, .range = 1},
                          PlannedAllocation{.size = 128, .range = 0, .in_place = true},
                          PlannedAllocation{.size = 64, .range = PlannedAllocation::kUpstream}))
      << "what is made between ops has no key";
  EXPECT_THAT(table.ranges, ElementsAre(SlotRange{.offset = plan.offsets[0], .size = 128},
                                        SlotRange{.offset = plan.offsets[1], .size = 64}));
  EXPECT_EQ(table.height, plan.height);
}

TEST(EmptyPackingTest, OpsThatAllocateNothingHaveATableToo) {
  Trace trace;
  trace.ops = 3;
  const Packing packing = MakePacking({}, {}, trace, 64);
  const SlotTable table = MakeSlotTable(packing, MakePlan(packing.problem), {}, trace, 64);
  EXPECT_NO_THROW(table.Check());
  EXPECT_THAT(table.first_of_op, ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(table.height, 0);
}

TEST(EmptyPackingTest, APassWithoutOpsHasATableToo) {
  const SlotTable table = MakeSlotTable({}, {}, {}, {}, 64);
  EXPECT_NO_THROW(table.Check());
  EXPECT_EQ(table.ops(), 0U);
}

}  // namespace
}  // namespace livepool
