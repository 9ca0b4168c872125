#include "livepool/plan/planner.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "allocator/plan/brute_force.h"
#include "allocator/plan/test_problems.h"
#include "livepool/base/error.h"
#include "livepool/plan/validate.h"

namespace livepool {
namespace {

using testing::HandMade;
using testing::NamedProblem;

// Every way to set the switches of the rules with at least one on. The last one is the default: all on.
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

TEST(PlannerSwitches, ShortcutsSpareTheRules) {
  const Problem problem = HandMade("AllTogether");
  EXPECT_EQ(MakePlan(problem).algorithm, "stack");
  EXPECT_EQ(MakePlan(problem, {.shortcuts = false}).algorithm, "skyline by lifetime, area, peak");
}

// A switch that never lowered a plan would only cost time. The search would find all of these.
TEST(PlannerSwitches, SkylineHelps) {
  const Problem problem = HandMade("SkylineWins");
  EXPECT_EQ(MakePlan(problem, {.search_nodes = 0}).height, 4);
  EXPECT_EQ(MakePlan(problem, {.skyline = false, .search_nodes = 0}).height, 5);
}

TEST(PlannerSwitches, OffsetBestFitHelps) {
  const Problem problem = HandMade("OffsetBestFitWins");
  EXPECT_EQ(MakePlan(problem, {.search_nodes = 0}).height, 11);
  EXPECT_EQ(MakePlan(problem, {.offset_best_fit = false, .search_nodes = 0}).height, 12);
}

TEST(PlannerSwitches, WholeSlotsHelp) {
  const Problem problem = HandMade("WholeSlotsWin");
  EXPECT_EQ(MakePlan(problem, {.skyline = false, .search_nodes = 0}).height, 13);
  EXPECT_EQ(MakePlan(problem, {.skyline = false, .whole_slots = false, .search_nodes = 0}).height, 14);
}

// Alignments from 1 to 16 on sizes up to 6, against the best plan there is.
TEST(MakePlan, OfMixedAlignmentsIsMostlyTheBest) {
  int best = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Problem problem = testing::RandomProblem(seed, {.buffers = 6, .times = 4, .max_size = 6, .alignments = true});
    const Bytes lowest = testing::BruteForce::LowestHeight(problem);
    const Plan plan = MakePlan(problem);
    EXPECT_GE(plan.height, lowest) << "seed " << seed;
    best += plan.height == lowest ? 1 : 0;
  }
  EXPECT_GE(best, 140);
}

TEST(PlannerSwitches, SearchHelps) {
  const Plan plan = MakePlan(HandMade("WholeSlotsWin"), {.skyline = false, .whole_slots = false});
  EXPECT_EQ(plan.height, 13);
  EXPECT_EQ(plan.algorithm, "depth-first search");
  EXPECT_TRUE(plan.ProvedOptimal());
}

TEST(MakePlan, ProvesThatNoPlanReachesTheBound) {
  const Problem problem = HandMade("AboveTheBound");
  const Plan plan = MakePlan(problem);
  EXPECT_EQ(plan.lower_bound, 9);
  EXPECT_EQ(plan.height, 10);
  EXPECT_EQ(plan.proved_bound, 10);
  EXPECT_TRUE(plan.ProvedOptimal());
  EXPECT_EQ(Validate(problem, plan).message, "");
  EXPECT_FALSE(MakePlan(problem, {.search_nodes = 0}).ProvedOptimal());
}

TEST(MakePlan, StopsAtTheCapacity) {
  const Problem problem = HandMade("SkylineWins");
  const PlannerOptions options{.skyline = false, .capacity = 5};
  EXPECT_EQ(MakePlan(problem, options).height, 5);
  EXPECT_EQ(MakePlan(problem, {.skyline = false}).height, 4);
}

TEST(MakePlan, StopsWhenToldAndHasAPlan) {
  const Problem problem = HandMade("WholeSlotsWin");
  int calls = 0;
  const Plan plan = MakePlan(problem, {}, [&](const Plan& best) {
    ++calls;
    EXPECT_EQ(Validate(problem, best).message, "");
    return false;
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(Validate(problem, plan).message, "");
  EXPECT_EQ(Validate(problem, MakePlan(problem, {.time_limit = 0.0})).message, "");
}

TEST(MakePlan, IsTheSameWithThreads) {
  for (const NamedProblem& named : testing::HandMadeProblems()) {
    SCOPED_TRACE(named.name);
    EXPECT_EQ(MakePlan(named.problem), MakePlan(named.problem, {.threads = 4}));
  }
}

TEST(MakePlan, OfNothing) {
  const Plan plan = MakePlan({});
  EXPECT_TRUE(plan.offsets.empty());
  EXPECT_EQ(plan.height, 0);
  EXPECT_TRUE(plan.ProvedOptimal());
}

TEST(MakePlan, OfOneBuffer) {
  const Plan plan = MakePlan(HandMade("OneBuffer"));
  EXPECT_EQ(plan, (Plan{.offsets = {0}, .height = 5, .lower_bound = 5, .algorithm = "stack"}));
}

TEST(MakePlan, OfOneFixedBuffer) {
  const Problem problem{{{.id = 1, .lifetime = {0, 1}, .size = 4, .fixed_offset = 8}}};
  const Plan plan = MakePlan(problem);
  EXPECT_EQ(plan.height, 12);
  EXPECT_EQ(plan.lower_bound, 4);
  EXPECT_EQ(Validate(problem, plan).message, "");
}

TEST(MakePlan, StopsAtTheFirstRuleThatReachesTheBound) {
  EXPECT_EQ(MakePlan(HandMade("Chain")).algorithm, "skyline by lifetime, area, peak");
  EXPECT_EQ(MakePlan(HandMade("Chain"), {.skyline = false}).algorithm, "offset best fit by birth, size");
}

// With 100,000 buffers each rule takes a while, and there may be time for one only.
TEST(MakePlan, OfAHugeProblemIsGoodAtTheFirstRule) {
  std::mt19937_64 random(1);
  Problem problem;
  for (std::int64_t id = 0; id < 100'000; ++id) {
    const auto birth = static_cast<Time>(random() % 100'000);
    const auto length = static_cast<Time>(1 + random() % (random() % 1000 == 0 ? 10'000 : 200));
    problem.buffers.push_back(
        {.id = id, .lifetime = {birth, birth + length}, .size = static_cast<Bytes>(1 + random() % (1 << 20))});
  }
  const Plan plan = MakePlan(problem, {}, [](const Plan&) { return false; });
  EXPECT_EQ(plan.algorithm, "skyline by peak, lifetime, area, tight at 2 %");
  EXPECT_LE(static_cast<double>(plan.height), 1.03 * static_cast<double>(plan.lower_bound));
  EXPECT_EQ(Validate(problem, plan).message, "");
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
    (void)MakePlan(problem, {.skyline = false, .offset_best_fit = false});
    FAIL() << "nothing was thrown";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(),
                 "buffer 3: it has a fixed offset, which whole slots do not honour; turn on PlannerOptions::skyline or "
                 "offset_best_fit");
  }
}

TEST(MakePlan, RefusesMalformedProblems) {
  Problem problem = HandMade("Chain");
  problem.buffers[2].size = 0;
  EXPECT_THROW((void)MakePlan(problem), InvalidInput);
}

TEST(MakeBaselinePlan, IsTheRuleAlone) {
  const Problem problem = HandMade("WholeSlotsWin");
  for (const BaselineRule rule :
       {BaselineRule::kWholeSlots, BaselineRule::kBestFitByBirth, BaselineRule::kBestFitBySize}) {
    EXPECT_EQ(Validate(problem, MakeBaselinePlan(problem, rule)).message, "");
  }
  EXPECT_EQ(MakeBaselinePlan(problem, BaselineRule::kWholeSlots).height, 13);
  Problem fixed = HandMade("Chain");
  fixed.buffers[2].fixed_offset = 0;
  EXPECT_THROW((void)MakeBaselinePlan(fixed, BaselineRule::kWholeSlots), InvalidInput);
  EXPECT_EQ(Validate(fixed, MakeBaselinePlan(fixed, BaselineRule::kBestFitBySize)).message, "");
}

}  // namespace
}  // namespace livepool
