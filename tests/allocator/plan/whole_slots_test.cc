#include "whole_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/plan/test_problems.h"

namespace livepool {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

TEST(WholeSlots, ReusesASlotWhoseBufferIsDead) {
  // 1 and 2 overlap; 3 is as large as the slot of 1; 4 as the slot of 2.
  EXPECT_THAT(WholeSlots(testing::HandMade("Chain")), Optional(ElementsAre(0, 4, 0, 4)));
}

//   0 +---+             Slot [0, 8).
//   1 +---+             Slot [8, 12).
//   2     +---+         3 bytes: into the smaller one that holds them.
TEST(WholeSlots, TakesTheSmallestThatIsLargeEnough) {
  const Problem problem{{{.id = 0, .lifetime = {0, 1}, .size = 8},
                         {.id = 1, .lifetime = {0, 1}, .size = 4},
                         {.id = 2, .lifetime = {1, 2}, .size = 3}}};
  EXPECT_THAT(WholeSlots(problem), Optional(ElementsAre(0, 8, 8)));
}

TEST(WholeSlots, OpensASlotRatherThanGrowOne) {
  const Problem problem{{{.id = 0, .lifetime = {0, 1}, .size = 4}, {.id = 1, .lifetime = {1, 2}, .size = 5}}};
  EXPECT_THAT(WholeSlots(problem), Optional(ElementsAre(0, 4)));
}

// A slot is not shared by two small buffers: the baseline's waste.
TEST(WholeSlots, NeverSplitsASlot) {
  const Problem problem{{{.id = 0, .lifetime = {0, 1}, .size = 8},
                         {.id = 1, .lifetime = {1, 2}, .size = 4},
                         {.id = 2, .lifetime = {1, 2}, .size = 4}}};
  EXPECT_THAT(WholeSlots(problem), Optional(ElementsAre(0, 0, 8)));
}

// Slot 0 is taken over by 2, and its alignment rises to 8. Slot 1 cannot serve 3: 6 and 4 share no multiple that is
// one of them.
TEST(WholeSlots, PassesOverSlotsOfForeignAlignment) {
  const Problem problem{{{.id = 0, .lifetime = {0, 1}, .size = 9, .alignment = 2},
                         {.id = 1, .lifetime = {0, 1}, .size = 7, .alignment = 6},
                         {.id = 2, .lifetime = {1, 2}, .size = 9, .alignment = 8},
                         {.id = 3, .lifetime = {1, 2}, .size = 7, .alignment = 4}}};
  EXPECT_THAT(WholeSlots(problem), Optional(ElementsAre(0, 12, 0, 20)));
}

TEST(WholeSlots, GivesUpAtTheLimit) {
  EXPECT_TRUE(WholeSlots(testing::HandMade("Chain"), 13).has_value());
  EXPECT_FALSE(WholeSlots(testing::HandMade("Chain"), 12).has_value());
}

}  // namespace
}  // namespace livepool
