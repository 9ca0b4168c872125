#include "offset_best_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/plan/test_problems.h"
#include "livepool/plan/validate.h"

namespace livepool {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

//   7 | +-4-+      4 (size 1) fits into the gaps [1, 4) and [5, 7), and on top.
//   5 |+--2--+
//   4 |+--1--+
//   1 |+--0--+
TEST(OffsetBestFit, TakesTheSmallestGap) {
  const Problem problem{{{.id = 0, .lifetime = {0, 9}, .size = 1, .fixed_offset = 0},
                         {.id = 1, .lifetime = {0, 9}, .size = 1, .fixed_offset = 4},
                         {.id = 2, .lifetime = {0, 9}, .size = 1, .fixed_offset = 7},
                         {.id = 3, .lifetime = {1, 2}, .size = 1}}};
  EXPECT_THAT(OffsetBestFit(problem, {0, 1, 2, 3}), Optional(ElementsAre(0, 4, 7, 5)));
}

TEST(OffsetBestFit, TakesTheLowestOfEqualGaps) {
  const Problem problem{{{.id = 0, .lifetime = {0, 9}, .size = 1, .fixed_offset = 2},
                         {.id = 1, .lifetime = {0, 9}, .size = 1, .fixed_offset = 5},
                         {.id = 2, .lifetime = {0, 9}, .size = 1}}};
  EXPECT_THAT(OffsetBestFit(problem, {0, 1, 2}), Optional(ElementsAre(2, 5, 0)));
}

TEST(OffsetBestFit, GoesOnTopIfNoGapIsLargeEnough) {
  const Problem problem{
      {{.id = 0, .lifetime = {0, 9}, .size = 1, .fixed_offset = 2}, {.id = 1, .lifetime = {0, 9}, .size = 3}}};
  EXPECT_THAT(OffsetBestFit(problem, {0, 1}), Optional(ElementsAre(2, 3)));
}

// The gap [1, 7) holds 4 bytes, but not from a multiple of 4 on.
TEST(OffsetBestFit, CountsAlignmentAsPartOfTheNeed) {
  const Problem problem{{{.id = 0, .lifetime = {0, 9}, .size = 1, .fixed_offset = 0},
                         {.id = 1, .lifetime = {0, 9}, .size = 2, .fixed_offset = 7},
                         {.id = 2, .lifetime = {0, 9}, .size = 4, .alignment = 4}}};
  EXPECT_THAT(OffsetBestFit(problem, {0, 1, 2}), Optional(ElementsAre(0, 7, 12)));
}

TEST(OffsetBestFit, IgnoresWhatIsDead) {
  const Problem problem{{{.id = 0, .lifetime = {0, 4}, .size = 8}, {.id = 1, .lifetime = {4, 9}, .size = 3}}};
  EXPECT_THAT(OffsetBestFit(problem, {0, 1}), Optional(ElementsAre(0, 0)));
}

// 1 comes first in the order, yet 0 keeps its place.
TEST(OffsetBestFit, PlacesFixedBuffersFirst) {
  const Problem problem{
      {{.id = 0, .lifetime = {0, 4}, .size = 2, .fixed_offset = 1}, {.id = 1, .lifetime = {0, 4}, .size = 2}}};
  EXPECT_THAT(OffsetBestFit(problem, {1, 0}), Optional(ElementsAre(1, 3)));
}

TEST(OffsetBestFit, TheOrderDecides) {
  const Problem problem{{{.id = 0, .lifetime = {0, 2}, .size = 1}, {.id = 1, .lifetime = {1, 3}, .size = 2}}};
  EXPECT_THAT(OffsetBestFit(problem, {0, 1}), Optional(ElementsAre(0, 1)));
  EXPECT_THAT(OffsetBestFit(problem, {1, 0}), Optional(ElementsAre(2, 0)));
}

TEST(OffsetBestFit, GivesUpAtTheLimit) {
  const Problem problem{{{.id = 0, .lifetime = {0, 2}, .size = 1}, {.id = 1, .lifetime = {1, 3}, .size = 2}}};
  EXPECT_TRUE(OffsetBestFit(problem, {0, 1}, 4).has_value());
  EXPECT_FALSE(OffsetBestFit(problem, {0, 1}, 3).has_value());
}

TEST(OffsetBestFit, AnyOrderIsValid) {
  for (const testing::NamedProblem& named : testing::HandMadeProblems()) {
    SCOPED_TRACE(named.name);
    std::vector<std::size_t> order;
    for (std::size_t i = named.problem.buffers.size(); i > 0; --i) order.push_back(i - 1);
    const RuleResult offsets = OffsetBestFit(named.problem, order);
    ASSERT_TRUE(offsets);
    EXPECT_EQ(Validate(named.problem, testing::PlanOf(named.problem, *offsets)).message, "");
  }
}

}  // namespace
}  // namespace livepool
