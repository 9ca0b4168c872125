#include "order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

namespace livepool {
namespace {

using ::testing::ElementsAre;

std::vector<std::size_t> Sort(const Problem& problem, const Order& order) {
  return SortBuffers(problem, CutIntoSections(problem), order);
}

//   0 +-----------+             size 2, area 6, peak 7
//   1 +---+                     size 5, area 5, peak 7
//   2         +-------+         size 4, area 8, peak 6
//     0   1   2   3   4
class OrderTest : public ::testing::Test {
 protected:
  const Problem problem_{{{.id = 10, .lifetime = {0, 3}, .size = 2},
                          {.id = 11, .lifetime = {0, 1}, .size = 5},
                          {.id = 12, .lifetime = {2, 4}, .size = 4}}};
};

TEST_F(OrderTest, FollowsEachKey) {
  EXPECT_THAT(Sort(problem_, {Key::kBirth}), ElementsAre(0, 1, 2));
  EXPECT_THAT(Sort(problem_, {Key::kDeath}), ElementsAre(2, 0, 1));
  EXPECT_THAT(Sort(problem_, {Key::kLifetime}), ElementsAre(0, 2, 1));
  EXPECT_THAT(Sort(problem_, {Key::kSize}), ElementsAre(1, 2, 0));
  EXPECT_THAT(Sort(problem_, {Key::kArea}), ElementsAre(2, 0, 1));
  EXPECT_THAT(Sort(problem_, {Key::kPeak}), ElementsAre(0, 1, 2));
}

TEST_F(OrderTest, IsLexicographic) {
  EXPECT_THAT(Sort(problem_, {Key::kBirth, Key::kSize}), ElementsAre(1, 0, 2));
  EXPECT_THAT(Sort(problem_, {Key::kPeak, Key::kArea}), ElementsAre(0, 1, 2));
}

TEST_F(OrderTest, BreaksTheLastTieById) {
  Problem equal = problem_;
  for (Buffer& buffer : equal.buffers) buffer = {.id = -buffer.id, .lifetime = {0, 1}, .size = 1};
  EXPECT_THAT(Sort(equal, {Key::kSize}), ElementsAre(2, 1, 0));
  EXPECT_THAT(Sort(equal, {}), ElementsAre(2, 1, 0));
}

TEST_F(OrderTest, SurvivesTheWidestNumbers) {
  const Problem extreme{{{.id = 0, .lifetime = {INT64_MIN, INT64_MAX}, .size = 1},
                         {.id = 1, .lifetime = {INT64_MIN, INT64_MIN + 1}, .size = Bytes{1} << 61},
                         {.id = 2, .lifetime = {0, INT64_MAX}, .size = 4}}};
  EXPECT_THAT(Sort(extreme, {Key::kBirth}), ElementsAre(0, 1, 2));
  EXPECT_THAT(Sort(extreme, {Key::kDeath}), ElementsAre(0, 2, 1));
  EXPECT_THAT(Sort(extreme, {Key::kLifetime}), ElementsAre(0, 2, 1));
  EXPECT_THAT(Sort(extreme, {Key::kArea}), ElementsAre(2, 0, 1));
}

TEST(OrderNames, ListTheKeys) {
  EXPECT_EQ(ToString({Key::kPeak, Key::kLifetime, Key::kArea}), "peak, lifetime, area");
  EXPECT_EQ(ToString({Key::kBirth, Key::kDeath, Key::kSize}), "birth, death, size");
}

}  // namespace
}  // namespace livepool
