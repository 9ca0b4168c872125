#include "shortcuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/plan/test_problems.h"
#include "livepool/plan/planner.h"
#include "livepool/plan/validate.h"

namespace livepool {
namespace {

using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::Optional;

//   6 |    +--2--+     All three live in [2, 3): the bound is the sum.
//   4 | +--3----+
//   0 | +-1--+
//       0  1 2  3  4
TEST(Stack, PutsOneOnTopOfTheOther) {
  const Problem problem{{{.id = 1, .lifetime = {0, 3}, .size = 4},
                         {.id = 3, .lifetime = {1, 4}, .size = 2},
                         {.id = 2, .lifetime = {2, 3}, .size = 3}}};
  EXPECT_THAT(Stack(problem), Optional(ElementsAre(0, 7, 4)));
}

TEST(Stack, TakesTheLargestAlignmentFirst) {
  const Problem problem{
      {{.id = 1, .lifetime = {0, 2}, .size = 3}, {.id = 2, .lifetime = {0, 2}, .size = 8, .alignment = 8}}};
  EXPECT_THAT(Stack(problem), Optional(ElementsAre(8, 0)));
}

TEST(Stack, DoesNotApply) {
  EXPECT_THAT(Stack({}), Eq(std::nullopt));
  EXPECT_THAT(Stack(testing::HandMade("OneAfterTheOther")), Eq(std::nullopt)) << "two that never live together";
  // Each overlaps another one, but 1 and 3 do not.
  EXPECT_THAT(Stack(testing::HandMade("Chain")), Eq(std::nullopt));
  Problem problem = testing::HandMade("AllTogether");
  problem.buffers[0].fixed_offset = 0;
  EXPECT_THAT(Stack(problem), Eq(std::nullopt)) << "a fixed offset";
  problem.buffers = {{.id = 1, .lifetime = {0, 2}, .size = 6, .alignment = 4},
                     {.id = 2, .lifetime = {0, 2}, .size = 4, .alignment = 4}};
  EXPECT_THAT(Stack(problem), Eq(std::nullopt)) << "alignment leaves space";
}

//   8 |       +-3-+         At most three live at once, in [2, 3). 4 takes the lowest place that is free by then.
//   4 |   +--2--+ +-5-+
//   0 | +-1-+ +---4---+
//       0 1 2 3   5   7
TEST(ColourIntervals, TakesTheLowestFreePlace) {
  const Problem problem{{{.id = 1, .lifetime = {0, 3}, .size = 4},
                         {.id = 2, .lifetime = {1, 4}, .size = 4},
                         {.id = 3, .lifetime = {2, 5}, .size = 4},
                         {.id = 4, .lifetime = {3, 7}, .size = 4, .alignment = 2},
                         {.id = 5, .lifetime = {5, 7}, .size = 4}}};
  EXPECT_THAT(ColourIntervals(problem), Optional(ElementsAre(0, 4, 8, 0, 4)));
}

TEST(ColourIntervals, DoesNotApply) {
  EXPECT_THAT(ColourIntervals({}), Eq(std::nullopt));
  EXPECT_THAT(ColourIntervals(testing::HandMade("Chain")), Eq(std::nullopt)) << "two sizes";
  Problem problem{{{.id = 1, .lifetime = {0, 3}, .size = 4}, {.id = 2, .lifetime = {1, 4}, .size = 4}}};
  EXPECT_TRUE(ColourIntervals(problem));
  problem.buffers[1].alignment = 8;
  EXPECT_THAT(ColourIntervals(problem), Eq(std::nullopt)) << "an alignment that does not divide the size";
  problem.buffers[1].alignment = 1;
  problem.buffers[0].fixed_offset = 0;
  EXPECT_THAT(ColourIntervals(problem), Eq(std::nullopt)) << "a fixed offset";
}

// Where a shortcut gives a plan, it is valid and ends at the bound: as good as any other, and the planner says so.
TEST(Shortcuts, EndAtTheBound) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Problem one_size = testing::RandomProblem(seed, {.buffers = 40});
    Problem one_time = one_size;
    for (Buffer& buffer : one_size.buffers) buffer.size = 64;
    for (Buffer& buffer : one_time.buffers) buffer.lifetime = {buffer.lifetime.birth, 100};
    for (const auto& [problem, algorithm] : {std::pair(one_size, "interval colouring"), std::pair(one_time, "stack")}) {
      const Plan plan = MakePlan(problem);
      EXPECT_EQ(Validate(problem, plan).message, "");
      EXPECT_EQ(plan.height, plan.lower_bound);
      EXPECT_EQ(plan.algorithm, algorithm);
      EXPECT_LE(plan.height, MakePlan(problem, {.shortcuts = false}).height);
    }
  }
}

}  // namespace
}  // namespace livepool
