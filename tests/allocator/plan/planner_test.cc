#include "livepool/plan/planner.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "allocator/plan/test_problems.h"
#include "livepool/base/error.h"
#include "livepool/plan/validate.h"

namespace livepool {
namespace {

using testing::HandMade;
using testing::NamedProblem;

// Every way to set the switches with at least one on. The last one is the default: all on.
std::vector<PlannerOptions> AllOptions() {
  std::vector<PlannerOptions> all;
  for (unsigned bits = 1; bits < 8; ++bits) {
    all.push_back({.skyline = (bits & 1U) != 0, .offset_best_fit = (bits & 2U) != 0, .whole_slots = (bits & 4U) != 0});
  }
  return all;
}

std::string NameOf(const PlannerOptions& options) {
  return std::string(options.skyline ? "Skyline" : "") + (options.offset_best_fit ? "OffsetBestFit" : "") +
         (options.whole_slots ? "WholeSlots" : "");
}

class PlannerOptionsTest : public ::testing::TestWithParam<std::tuple<PlannerOptions, NamedProblem>> {};

TEST_P(PlannerOptionsTest, EverySetOfRulesGivesAValidPlanAndAllRulesTheBest) {
  const auto& [options, named] = GetParam();
  const Plan plan = MakePlan(named.problem, options);
  EXPECT_EQ(Validate(named.problem, plan).message, "");
  EXPECT_LE(MakePlan(named.problem).height, plan.height);
}

INSTANTIATE_TEST_SUITE_P(HandMade, PlannerOptionsTest,
                         ::testing::Combine(::testing::ValuesIn(AllOptions()),
                                            ::testing::ValuesIn(testing::HandMadeProblems())),
                         [](const auto& test) {
                           return NameOf(std::get<0>(test.param)) + "_" + std::get<1>(test.param).name;
                         });

// A switch that never lowered a plan would only cost time.
TEST(PlannerSwitches, SkylineHelps) {
  const Problem problem = HandMade("SkylineWins");
  EXPECT_EQ(MakePlan(problem).height, 4);
  EXPECT_EQ(MakePlan(problem, {.skyline = false}).height, 5);
}

TEST(PlannerSwitches, OffsetBestFitHelps) {
  const Problem problem = HandMade("OffsetBestFitWins");
  EXPECT_EQ(MakePlan(problem).height, 6);
  EXPECT_EQ(MakePlan(problem, {.offset_best_fit = false}).height, 7);
}

TEST(PlannerSwitches, WholeSlotsHelp) {
  const Problem problem = HandMade("WholeSlotsWin");
  EXPECT_EQ(MakePlan(problem).height, 13);
  EXPECT_EQ(MakePlan(problem, {.whole_slots = false}).height, 14);
}

TEST(MakePlan, OfNothing) {
  const Plan plan = MakePlan({});
  EXPECT_TRUE(plan.offsets.empty());
  EXPECT_EQ(plan.height, 0);
  EXPECT_TRUE(plan.ProvedOptimal());
}

TEST(MakePlan, OfOneBuffer) {
  const Plan plan = MakePlan(HandMade("OneBuffer"));
  EXPECT_EQ(plan, (Plan{.offsets = {0}, .height = 5, .lower_bound = 5, .algorithm = "one buffer"}));
}

TEST(MakePlan, OfOneFixedBuffer) {
  const Problem problem{{{.id = 1, .lifetime = {0, 1}, .size = 4, .fixed_offset = 8}}};
  const Plan plan = MakePlan(problem);
  EXPECT_EQ(plan.height, 12);
  EXPECT_EQ(plan.lower_bound, 4);
  EXPECT_EQ(Validate(problem, plan).message, "");
}

TEST(MakePlan, StopsAtTheFirstRuleThatReachesTheBound) {
  EXPECT_EQ(MakePlan(HandMade("Chain")).algorithm, "skyline by area, size");
  EXPECT_EQ(MakePlan(HandMade("Chain"), {.skyline = false}).algorithm, "offset best fit by birth, size");
}

TEST(MakePlan, WorksAroundFixedBuffers) {
  const Problem problem{{{.id = 1, .lifetime = {0, 9}, .size = 4, .fixed_offset = 4},
                         {.id = 2, .lifetime = {0, 5}, .size = 4},
                         {.id = 3, .lifetime = {5, 9}, .size = 3}}};
  const Plan plan = MakePlan(problem);
  EXPECT_EQ(plan.offsets, (std::vector<Bytes>{4, 0, 0}));
  EXPECT_TRUE(plan.ProvedOptimal());
}

TEST(MakePlan, NeedsARule) {
  const PlannerOptions none{.skyline = false, .offset_best_fit = false, .whole_slots = false};
  EXPECT_THROW((void)MakePlan({}, none), InvalidInput);
}

TEST(MakePlan, NeedsARuleThatHonoursFixedOffsets) {
  Problem problem = HandMade("Chain");
  problem.buffers[2].fixed_offset = 0;
  try {
    (void)MakePlan(problem, {.offset_best_fit = false});
    FAIL() << "nothing was thrown";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(),
                 "buffer 3: it has a fixed offset, which only PlannerOptions::offset_best_fit honours; turn it on");
  }
}

TEST(MakePlan, RefusesMalformedProblems) {
  Problem problem = HandMade("Chain");
  problem.buffers[2].size = 0;
  EXPECT_THROW((void)MakePlan(problem), InvalidInput);
}

}  // namespace
}  // namespace livepool
