// Fixed offsets: squatters that stay where they are while the rest is planned around them.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "allocator/plan/brute_force.h"
#include "allocator/plan/test_problems.h"
#include "livepool/plan/planner.h"
#include "livepool/plan/validate.h"

namespace livepool {
namespace {

constexpr PlannerOptions kSkyline{.shortcuts = false, .offset_best_fit = false, .whole_slots = false};

//  11 | +-----4-----+      The arena is full in [1, 2) at 15: 1 stays, and what lies below it is packed up to it.
//   7 |    +--1--+         (1 is fixed at 7)
//   0 | +-2-+ +-3-+
TEST(FixedOffsets, TheSkylineFillsTheSpaceBelowAndAbove) {
  const Problem problem{{{.id = 1, .lifetime = {1, 3}, .size = 4, .fixed_offset = 7},
                         {.id = 2, .lifetime = {0, 2}, .size = 7},
                         {.id = 3, .lifetime = {2, 4}, .size = 7},
                         {.id = 4, .lifetime = {0, 4}, .size = 4}}};
  const Plan plan = MakePlan(problem, kSkyline);
  EXPECT_EQ(plan.height, 15);
  EXPECT_EQ(plan.offsets, (std::vector<Bytes>{7, 0, 0, 11}));
  EXPECT_TRUE(plan.ProvedOptimal());
}

TEST(FixedOffsets, ThePlannerKnowsWhatTheyForce) {
  const Problem problem{
      {{.id = 1, .lifetime = {0, 1}, .size = 4, .fixed_offset = 4}, {.id = 2, .lifetime = {0, 2}, .size = 5}}};
  const Plan plan = MakePlan(problem);
  EXPECT_EQ(plan.lower_bound, 9);
  EXPECT_EQ(plan.proved_bound, 13);
  EXPECT_TRUE(plan.ProvedOptimal());
}

// Against the best plan there is. The rules are heuristics: nearly always is what they must reach.
TEST(FixedOffsets, PlansAreNearlyAlwaysTheBest) {
  constexpr int kProblems = 300;
  int best = 0;
  int best_of_skyline = 0;
  for (std::uint64_t seed = 0; seed < kProblems; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem =
        testing::RandomProblem(seed, {.buffers = 7, .times = 4, .max_size = 6, .fixed_offsets = true});
    const Bytes lowest = testing::BruteForce::LowestHeight(problem);
    const Plan plan = MakePlan(problem);
    const Plan skyline = MakePlan(problem, kSkyline);
    EXPECT_EQ(Validate(problem, skyline).message, "");
    EXPECT_GE(plan.height, lowest);
    EXPECT_LE(std::max(plan.lower_bound, plan.proved_bound), lowest);
    best += plan.height == lowest ? 1 : 0;
    best_of_skyline += skyline.height == lowest ? 1 : 0;
  }
  EXPECT_GE(best, kProblems * 98 / 100);
  EXPECT_GE(best_of_skyline, kProblems * 97 / 100);
}

// What eager serving does: some of the live buffers of a running plan stay, and the rest of the pass is planned anew.
TEST(FixedOffsets, AroundSquattersOfAnEarlierPlan) {
  int at_the_bound = 0;
  constexpr int kProblems = 50;
  for (std::uint64_t seed = 0; seed < kProblems; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Problem problem = testing::RandomProblem(seed, {.buffers = 200, .times = 150, .max_size = 1000});
    const Plan before = MakePlan(problem);
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
      if (random() % 10 == 0) problem.buffers[i].fixed_offset = before.offsets[i];
    }
    const Plan after = MakePlan(problem);
    EXPECT_EQ(Validate(problem, after).message, "");
    at_the_bound += after.ProvedOptimal() ? 1 : 0;
  }
  RecordProperty("at_the_bound", at_the_bound);
  EXPECT_GE(at_the_bound, kProblems / 2);
}

}  // namespace
}  // namespace livepool
