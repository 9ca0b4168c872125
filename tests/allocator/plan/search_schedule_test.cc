#include "search_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "allocator/plan/cut_rectangle.h"
#include "allocator/plan/test_problems.h"
#include "livepool/plan/validate.h"

namespace livepool {
namespace {

// Too hard for the nodes given here.
const Problem& Hard() {
  static const Problem kProblem = testing::HoledRectangle(0, 400, 40);
  return kProblem;
}

struct Record {
  std::vector<Offsets> improvements;
  SearchResult result;
};

// All plans below 1200 that the search finds on its way; after `most` of them it is stopped.
Record SearchHard(std::int64_t nodes, std::uint64_t seed, std::size_t most = SIZE_MAX) {
  Record record;
  record.result = SearchBelow(Hard(), CutIntoSections(Hard()),
                              {.best_height = 1200,
                               .goal = 0,
                               .max_nodes = nodes,
                               .seed = seed,
                               .improved = [&](const Offsets& offsets) { record.improvements.push_back(offsets); },
                               .stop = [&] { return record.improvements.size() >= most; }});
  return record;
}

TEST(SearchSchedule, EachPlanIsValidAndLowerThanTheOneBefore) {
  Bytes last = 1200;
  const Record record = SearchHard(40'000, 0);
  for (const Offsets& offsets : record.improvements) {
    const Plan plan = testing::PlanOf(Hard(), offsets);
    EXPECT_EQ(Validate(Hard(), plan).message, "");
    EXPECT_LT(plan.height, last);
    last = plan.height;
  }
  ASSERT_GE(record.improvements.size(), 3U);
  EXPECT_EQ(record.result.offsets, record.improvements.back());
  EXPECT_LE(record.result.nodes, 40'000);
}

TEST(SearchSchedule, IsTheSameWhenRunAgain) {
  const Record first = SearchHard(40'000, 7);
  const Record second = SearchHard(40'000, 7);
  EXPECT_EQ(first.improvements, second.improvements);
  EXPECT_EQ(first.result.nodes, second.result.nodes);
}

// So a time limit can only end the work earlier.
TEST(SearchSchedule, StoppedEarlierItHasTheSamePlansSoFar) {
  const Record all = SearchHard(40'000, 0);
  const Record some = SearchHard(40'000, 0, 2);
  ASSERT_GE(some.improvements.size(), 2U);
  ASSERT_LE(some.improvements.size(), all.improvements.size());
  EXPECT_TRUE(std::equal(some.improvements.begin(), some.improvements.end(), all.improvements.begin()));
  EXPECT_LT(some.result.nodes, all.result.nodes);
}

TEST(SearchSchedule, StopsAtTheGoal) {
  const Problem problem = testing::HoledRectangle(0);
  const SearchResult result =
      SearchBelow(problem, CutIntoSections(problem), {.best_height = 2000, .goal = 1000, .max_nodes = 1'000'000});
  ASSERT_TRUE(result.offsets);
  EXPECT_LE(testing::PlanOf(problem, *result.offsets).height, 1000);
  EXPECT_LT(result.nodes, 10'000);
}

TEST(SearchSchedule, ProvesWhatItHasExcluded) {
  const Problem problem = testing::HandMade("AboveTheBound");
  const SearchResult result =
      SearchBelow(problem, CutIntoSections(problem), {.best_height = 10, .max_nodes = 1'000'000});
  EXPECT_FALSE(result.offsets);
  EXPECT_EQ(result.proved_bound, 10);
}

}  // namespace
}  // namespace livepool
