#include "core_search.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "allocator/plan/cut_rectangle.h"
#include "allocator/plan/test_problems.h"
#include "livepool/plan/planner.h"
#include "livepool/plan/validate.h"

namespace livepool {
namespace {

TEST(CoreSearch, ReachesTheBoundWhereTheRulesDoNot) {
  int better = 0;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = testing::HardCoreAmongMany(seed);
    const Plan with = MakePlan(problem, {.search_nodes = 20'000});
    const Plan without = MakePlan(problem, {.search_nodes = 20'000, .search = {.core = false}});
    EXPECT_EQ(Validate(problem, with).message, "");
    EXPECT_LE(with.height, without.height);
    if (with.height == with.lower_bound && without.height > without.lower_bound) ++better;
  }
  EXPECT_GE(better, 3);
}

TEST(CoreSearch, IsTheSameWhenRunAgain) {
  const Problem problem = testing::HardCoreAmongMany(1);
  const PlannerOptions options{.search_nodes = 5'000, .seed = 3};
  EXPECT_EQ(MakePlan(problem, options), MakePlan(problem, options));
}

// A core that cannot be packed at the bound proves as much of everything.
TEST(CoreSearch, ProvesABound) {
  Problem problem = testing::HandMade("AboveTheBound");
  for (std::int64_t i = 0; i < 5000; ++i) {
    problem.buffers.push_back({.id = 100 + i, .lifetime = {100 + i, 103 + i}, .size = 1 + i % 2});
  }
  const Plan plan = MakePlan(problem);
  EXPECT_EQ(plan.lower_bound, 9);
  EXPECT_EQ(plan.height, 10);
  EXPECT_EQ(plan.proved_bound, 10);
}

TEST(CoreSearch, LeavesProblemsWithFixedBuffersAlone) {
  Problem problem = testing::HardCoreAmongMany(0);
  problem.buffers.back().fixed_offset = 0;
  const Sections sections = CutIntoSections(problem);
  const RangeTree tree(sections);
  const SearchResult result = SearchCore(problem, sections, tree, {.best_height = 10'000, .max_nodes = 10}, {});
  EXPECT_FALSE(result.offsets);
  EXPECT_EQ(result.nodes, 0);
}

//     live   3     9    5        Three sections. With a best plan of 10, one above the bound, the core is what lives
//          A +-1--------+        where 8 bytes or more do; with one of 13, four above the bound, E is in it, too.
//          B    +--7----+
//          D      +-1---+
//          C +2-+       +-5-+ E
Sections Steps() {
  return CutIntoSections({{{.id = 0, .lifetime = {0, 6}, .size = 1},     // A
                           {.id = 1, .lifetime = {2, 6}, .size = 7},     // B
                           {.id = 2, .lifetime = {4, 6}, .size = 1},     // D
                           {.id = 3, .lifetime = {0, 1}, .size = 2},     // C
                           {.id = 4, .lifetime = {6, 8}, .size = 5}}});  // E
}

TEST(CoreBuffers, LiveWhereNearlyAsManyBytesDoAsTheBoundSays) {
  EXPECT_EQ(CoreBuffers(Steps(), 10, 100), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(CoreBuffers(Steps(), 13, 100), (std::vector<std::size_t>{0, 1, 2, 4}));
  EXPECT_EQ(CoreBuffers(Steps(), 15, 100), (std::vector<std::size_t>{0, 1, 2, 3, 4}));
}

TEST(CoreBuffers, AreTheHighestIfTheyAreTooMany) {
  EXPECT_EQ(CoreBuffers(Steps(), 15, 4), (std::vector<std::size_t>{0, 1, 2, 4}));
  EXPECT_EQ(CoreBuffers(Steps(), 15, 3), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_TRUE(CoreBuffers(Steps(), 15, 2).empty());
}

}  // namespace
}  // namespace livepool
