#include "skyline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "allocator/plan/test_problems.h"
#include "livepool/plan/validate.h"

namespace livepool {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

RuleResult SkylineOf(const Problem& problem, const std::vector<std::size_t>& by_rank, Bytes limit = kNoLimit,
                     std::optional<double> tightness = std::nullopt) {
  const Sections sections = CutIntoSections(problem);
  return Skyline(problem, sections, RangeTree(sections), {by_rank, tightness}, limit);
}

TEST(Skyline, OfNothing) { EXPECT_THAT(SkylineOf({}, {}), Optional(ElementsAre())); }

//   4 |    +--2--+        0 is placed first. Then [2, 4) is the lowest segment, and 1 fits. 2 spans both, so it waits
//     |       +--1--+     until the left segment is raised to the level of the right one.
//   0 | +--0--+--1--+
//       0  1  2  3  4
TEST(Skyline, FillsTheLowestSegmentFirst) {
  const Problem problem{{{.id = 0, .lifetime = {0, 2}, .size = 2},
                         {.id = 1, .lifetime = {2, 4}, .size = 4},
                         {.id = 2, .lifetime = {1, 3}, .size = 1}}};
  EXPECT_THAT(SkylineOf(problem, {0, 1, 2}), Optional(ElementsAre(0, 0, 4)));
  // 2 first: 0 and 1 do not fit beside it and go on top.
  EXPECT_THAT(SkylineOf(problem, {2, 0, 1}), Optional(ElementsAre(1, 1, 0)));
}

//   3 |+-2-+ +-3-+      0 and 1 end at the same level; what spans both lies flat on them.
//   2 |+----4----+
//   0 |+-0-+ +-1-+
TEST(Skyline, MergesSegmentsOfOneLevel) {
  const Problem problem{{{.id = 0, .lifetime = {0, 2}, .size = 2},
                         {.id = 1, .lifetime = {2, 4}, .size = 2},
                         {.id = 2, .lifetime = {0, 2}, .size = 3},
                         {.id = 3, .lifetime = {2, 4}, .size = 1},
                         {.id = 4, .lifetime = {0, 4}, .size = 1}}};
  EXPECT_THAT(SkylineOf(problem, {0, 1, 4, 2, 3}), Optional(ElementsAre(0, 0, 3, 3, 2)));
}

TEST(Skyline, RaisesToTheAlignment) {
  const Problem problem{{{.id = 0, .lifetime = {0, 2}, .size = 3},
                         {.id = 1, .lifetime = {1, 3}, .size = 4, .alignment = 8},
                         {.id = 2, .lifetime = {1, 2}, .size = 1}}};
  EXPECT_THAT(SkylineOf(problem, {0, 1, 2}), Optional(ElementsAre(0, 8, 12)));
}

TEST(Skyline, GivesUpAtTheLimit) {
  const Problem problem = testing::HandMade("AllTogether");
  EXPECT_TRUE(SkylineOf(problem, {0, 1, 2}, 16).has_value());
  EXPECT_FALSE(SkylineOf(problem, {0, 1, 2}, 15).has_value());
}

//   5 |    +--2--+        The bound is 5, and section 1 = {1, 2} has no slack. By rank, 0 and 2 lie at the floor and 1
//   2 | +0-+--2--+        goes on top of them, at 6. Where slack is scarce, 1 comes before 0: it covers section 1.
//   0 | +--1--+
//       0  1  2  3
TEST(Skyline, KeepsTightSectionsWhole) {
  const Problem problem{{{.id = 0, .lifetime = {0, 1}, .size = 1},
                         {.id = 1, .lifetime = {0, 2}, .size = 2},
                         {.id = 2, .lifetime = {1, 3}, .size = 3}}};
  EXPECT_THAT(SkylineOf(problem, {0, 1, 2}), Optional(ElementsAre(0, 3, 0)));
  EXPECT_THAT(SkylineOf(problem, {0, 1, 2}, kNoLimit, 0.0), Optional(ElementsAre(2, 0, 2)));
}

TEST(Skyline, AnyRankIsValid) {
  for (const testing::NamedProblem& named : testing::HandMadeProblems()) {
    SCOPED_TRACE(named.name);
    std::vector<std::size_t> by_rank(named.problem.buffers.size());
    std::iota(by_rank.rbegin(), by_rank.rend(), std::size_t{0});
    const RuleResult offsets = SkylineOf(named.problem, by_rank);
    ASSERT_TRUE(offsets);
    EXPECT_EQ(Validate(named.problem, testing::PlanOf(named.problem, *offsets)).message, "");
    for (const double tightness : {0.0, 0.1, 1.0}) {
      const RuleResult tight = SkylineOf(named.problem, by_rank, kNoLimit, tightness);
      ASSERT_TRUE(tight);
      EXPECT_EQ(Validate(named.problem, testing::PlanOf(named.problem, *tight)).message, "");
    }
  }
}

}  // namespace
}  // namespace livepool
