#include "livepool/graph/saved_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "livepool/base/error.h"

namespace livepool {
namespace {

using ::testing::HasSubstr;

constexpr Bytes kAlignment = 64;

// Op 0 makes a buffer that op 1 still needs, and a workspace that is gone before; op 1 makes what outlives the run.
Trace ARun() {
  return {.events = {{TraceEvent::Kind::kOpBegin, 0}},
          .allocations = {{.size = 100, .op = 0, .nth = 0, .birth = 1, .death = 7},
                          {.size = 60, .op = 0, .nth = 1, .birth = 2, .death = 3},
                          {.size = 10, .op = -1, .birth = 4, .death = 5},
                          {.size = 64, .op = 1, .nth = 0, .birth = 6}},
          .ops = 2};
}

SavedPlan Saved() {
  return {.ops = {"aten::a -> Float[25]", "aten::b -> Float[16]"},
          .recorded = AllocationsOf(ARun()),
          .calibration = AllocationsOf(ARun()),
          .problem = {.buffers = {{.id = 0, .lifetime = {1, 7}, .size = 128, .alignment = 64},
                                  {.id = 1, .lifetime = {2, 3}, .size = 64, .alignment = 64}}},
          .plan = {.offsets = {0, 128}, .height = 192, .lower_bound = 192}};
}

TEST(SavedPlanTest, WhatIsNotServedIsSavedAsNeverFreed) {
  Trace run = ARun();
  run.allocations[1].same_stream = false;
  const Trace saved = AllocationsOf(run);
  EXPECT_TRUE(saved.events.empty());
  EXPECT_EQ(saved.ops, 2);
  EXPECT_EQ(saved.allocations[0], run.allocations[0]);
  for (const int i : {1, 2, 3})
    EXPECT_EQ(saved.allocations[static_cast<std::size_t>(i)].death, TraceAllocation::kNeverFreed) << i;
}

TEST(SavedPlanTest, TheTableServesEachAllocationFromItsBirthToItsDeath) {
  const SlotTable table = TableOf(AllocationsOf(ARun()), kAlignment);
  table.Check();
  EXPECT_EQ(table.height, 192);
  EXPECT_EQ(table.first_of_op, (std::vector<std::uint32_t>{0, 2, 3}));
  ASSERT_EQ(table.allocations.size(), 3U);  // what lies between ops is not foreseen
  EXPECT_EQ(table.allocations[0].size, 128);
  EXPECT_NE(table.allocations[0].range, table.allocations[1].range);
  EXPECT_EQ(table.allocations[2].range, PlannedAllocation::kUpstream);
  for (const PlannedAllocation& each : table.allocations) EXPECT_FALSE(each.in_place);
}

TEST(SavedPlanTest, TheFirstOpThatDiffersIsNamed) {
  const std::vector<std::string> ops{"aten::a -> Float[1]", "aten::b -> Float[1]"};
  EXPECT_EQ(DifferenceOfOps(ops, ops), "");
  EXPECT_EQ(DifferenceOfOps(ops, {ops[0], "aten::c -> Float[1]"}),
            "op 1 was aten::b -> Float[1] and is aten::c -> Float[1]");
  EXPECT_EQ(DifferenceOfOps(ops, {ops[0]}), "op 1 was aten::b -> Float[1], and the pass ends before it now");
  EXPECT_EQ(DifferenceOfOps({ops[0]}, ops), "op 1 is aten::b -> Float[1], and the pass had ended before it");
}

TEST(SavedPlanTest, WhatWasSavedIsGood) { CheckSavedPlan(Saved()); }

struct BadPlan {
  const char* message;
  std::function<void(SavedPlan&)> change;
};

class BadPlanTest : public ::testing::TestWithParam<BadPlan> {};

TEST_P(BadPlanTest, IsNamed) {
  SavedPlan saved = Saved();
  GetParam().change(saved);
  try {
    CheckSavedPlan(saved);
    FAIL() << "not noticed: " << GetParam().message;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BadPlanTest,
    ::testing::Values(
        BadPlan{"not as many ops as there are names", [](SavedPlan& s) { s.ops.pop_back(); }},
        BadPlan{"the calibration has -1 ops", [](SavedPlan& s) { s.calibration.ops = -1; }},
        BadPlan{"the calibration has 2000000000 ops", [](SavedPlan& s) { s.calibration.ops = 2'000'000'000; }},
        BadPlan{"allocation 3 of the recorded run is in op 2 of 2",
                [](SavedPlan& s) { s.recorded.allocations[3].op = 2; }},
        BadPlan{"allocation 0 of the calibration is in op -2",
                [](SavedPlan& s) { s.calibration.allocations[0].op = -2; }},
        BadPlan{"allocation 1 of the recorded run is in an earlier op",
                [](SavedPlan& s) { s.recorded.allocations[0].op = 1; }},
        BadPlan{"has 0 bytes", [](SavedPlan& s) { s.recorded.allocations[0].size = 0; }},
        BadPlan{"allocation 1 of the calibration has",
                [](SavedPlan& s) {
                  for (TraceAllocation& each : s.calibration.allocations) each.size = Bytes{1} << 60;
                }},
        BadPlan{"is not born after the one before it", [](SavedPlan& s) { s.recorded.allocations[1].birth = 1; }},
        BadPlan{"is not born after the one before it", [](SavedPlan& s) { s.recorded.allocations[0].birth = -1; }},
        BadPlan{"dies before it is born", [](SavedPlan& s) { s.recorded.allocations[0].death = 1; }},
        BadPlan{"dies before it is born", [](SavedPlan& s) { s.recorded.allocations[0].death = -2; }},
        BadPlan{"overlap", [](SavedPlan& s) { s.plan.offsets[1] = 64; }},
        BadPlan{"height", [](SavedPlan& s) { s.plan.height = 128; }},
        BadPlan{"offset", [](SavedPlan& s) { s.plan.offsets.pop_back(); }},
        BadPlan{"negative offset", [](SavedPlan& s) { s.plan.offsets[0] = -64; }}));

}  // namespace
}  // namespace livepool
