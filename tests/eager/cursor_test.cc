#include "livepool/eager/cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eager/test_units.h"

namespace livepool {
namespace {

using ::testing::ElementsAre;
using testing::Keys;
using testing::UnitOf;

// What a pass is matched to: for each allocation the number of the unit and the position, or -1.
struct Walk {
  std::vector<int> units, positions;
  Unit* followed = nullptr;
  std::uint32_t divergences = 0;
};

Walk Follow(const UnitSet& set, const std::string& pass) {
  Walk walk;
  Cursor cursor(set);
  std::vector<Key> keys;
  for (const Key& key : Keys(pass)) {
    keys.push_back(key);
    const UnitSet::Place place = cursor.Next(keys);
    int unit = -1;
    for (std::size_t i = 0; i < set.units().size(); ++i) {
      if (set.units()[i].get() == place.unit) unit = static_cast<int>(i);
    }
    walk.units.push_back(unit);
    walk.positions.push_back(place.unit == nullptr ? -1 : static_cast<int>(place.position));
    if (place.unit != nullptr) {
      EXPECT_EQ(place.unit->keys()[place.position], key) << "a slot is for one size";
    }
  }
  walk.followed = cursor.FollowedExactly();
  walk.divergences = cursor.divergences();
  return walk;
}

class CursorTest : public ::testing::Test {
 protected:
  const UnitSet set_{{UnitOf("a1 b2 c3 d4 e5 f6 g7 h8")}};
  std::vector<int> PositionsOf(const std::string& pass) { return Follow(set_, pass).positions; }
};

TEST_F(CursorTest, FollowsAPassThatRepeats) {
  const Walk walk = Follow(set_, "a1 b2 c3 d4 e5 f6 g7 h8");
  EXPECT_THAT(walk.positions, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(walk.followed, set_.units()[0].get());
  EXPECT_EQ(walk.divergences, 0U);
}

TEST_F(CursorTest, APassThatEndsEarlyOrGoesOnIsOfAnotherKind) {
  EXPECT_EQ(Follow(set_, "a1 b2 c3").followed, nullptr);
  EXPECT_EQ(Follow(set_, "a1 b2 c3 d4 e5 f6 g7 h8 i9").followed, nullptr);
}

TEST_F(CursorTest, AnotherSizeIsPassedOver) {
  EXPECT_THAT(PositionsOf("a1 b2 c9 d4 e5"), ElementsAre(0, 1, -1, 3, 4));
  EXPECT_THAT(PositionsOf("a9 b2 c3"), ElementsAre(-1, 1, 2)) << "also at the begin";
}

TEST_F(CursorTest, SkippedAllocations) {
  EXPECT_THAT(PositionsOf("a1 c3 d4"), ElementsAre(0, 2, 3));
  EXPECT_THAT(PositionsOf("a1 f6 g7"), ElementsAre(0, 5, 6)) << "four";
  EXPECT_THAT(PositionsOf("a1 g7 h8"), ElementsAre(0, -1, -1)) << "five: two sites are not enough";
}

TEST_F(CursorTest, InsertedAllocations) {
  EXPECT_THAT(PositionsOf("a1 b2 x1 y1 c3 d4"), ElementsAre(0, 1, -1, -1, 2, 3));
}

TEST_F(CursorTest, NoUnitNoMatch) {
  const UnitSet none{{}};
  EXPECT_THAT(Follow(none, "a1 b2").positions, ElementsAre(-1, -1));
  EXPECT_THAT(PositionsOf("x1 y1"), ElementsAre(-1, -1));
}

TEST(CursorBranchTest, ABranchNotTakenIsLeftBehindAtThreeSites) {
  const UnitSet set{{UnitOf("a1 b2 p1 q1 r1 s1 t1 u1 v1 w1 c3 d4 e5 f6 g7")}};
  EXPECT_THAT(Follow(set, "a1 b2 c3 d4 e5 f6 g7").positions, ElementsAre(0, 1, -1, -1, 12, 13, 14));
}

TEST(CursorShapesTest, TheUnitIsFoundByTheFirstAllocation) {
  const UnitSet set{{UnitOf("a1 b1 c1"), UnitOf("a2 b2 c2")}};
  EXPECT_THAT(Follow(set, "a2 b2 c2").units, ElementsAre(1, 1, 1));
  EXPECT_THAT(Follow(set, "a1 b1 c1").units, ElementsAre(0, 0, 0));
}

TEST(CursorShapesTest, AnotherUnitTakesOverWhereTheyDiffer) {
  const UnitSet set{{UnitOf("a1 b1 c1 d1 e1"), UnitOf("a1 b1 c2 d2 e2"), UnitOf("a1 b1 x1 y1 z1")}};
  set.units()[0]->set_last_used(7);
  EXPECT_THAT(Follow(set, "a1 b1 c1 d1 e1").units, ElementsAre(0, 0, 0, 0, 0)) << "the one used last comes first";
  EXPECT_THAT(Follow(set, "a1 b1 c2 d2 e2").units, ElementsAre(0, 0, 1, 1, 1)) << "another size";
  EXPECT_THAT(Follow(set, "a1 b1 x1 y1 z1").units, ElementsAre(0, 0, 2, 2, 2)) << "another site";
  EXPECT_EQ(Follow(set, "a1 b1 x1 y1 z1").divergences, 0U);
}

TEST(CursorLostTest, IsFoundAgainByTheLastKeys) {
  std::string inserted;
  for (int i = 0; i < 30; ++i) inserted += "x1 ";
  const UnitSet set{{UnitOf("a1 b2 c3 d4 e5 f6 g7 h8")}};
  const Walk walk = Follow(set, "a1 " + inserted + "d4 e5 f6 g7 h8");
  EXPECT_EQ(walk.positions.front(), 0);
  EXPECT_EQ(walk.positions[30], -1);
  EXPECT_THAT(std::vector<int>(walk.positions.end() - 2, walk.positions.end()), ElementsAre(6, 7));
}

}  // namespace
}  // namespace livepool
