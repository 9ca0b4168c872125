#include "placed_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "allocator/plan/test_problems.h"

namespace livepool {
namespace {

using RangeSet = std::multiset<std::pair<Bytes, std::size_t>>;

RangeSet ToSet(const std::vector<PlacedBuffers::Range>& ranges) {
  RangeSet set;
  for (const PlacedBuffers::Range& range : ranges) set.emplace(range.begin, range.buffer);
  return set;
}

TEST(PlacedBuffers, AreNoneAtFirst) {
  EXPECT_TRUE(PlacedBuffers(Problem{}).During({0, 9}).empty());
  EXPECT_TRUE(PlacedBuffers(testing::HandMade("Chain")).During({0, 9}).empty());
}

//   1 +-------+           Placed at 6.  Lifetimes are half-open: [2, 3) touches 1 and does not overlap it.
//   2     +-------+       Placed at 0.
//     0   1   2   3
TEST(PlacedBuffers, AreFoundByLifetimeInOrderOfAddress) {
  const Problem problem = testing::HandMade("Chain");
  PlacedBuffers placed(problem);
  placed.Insert(0, 6);
  placed.Insert(1, 0);
  const auto both = placed.During({0, 3});
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].buffer, 1U);
  EXPECT_EQ(both[0].end, 8);
  EXPECT_EQ(both[1].buffer, 0U);
  EXPECT_EQ(both[1].begin, 6);
  EXPECT_EQ(ToSet(placed.During({2, 3})), (RangeSet{{0, 1}}));
  EXPECT_TRUE(placed.During({3, 9}).empty());
}

TEST(PlacedBuffers, EqualALinearScan) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = testing::RandomProblem(seed, {.buffers = 1 + seed});
    std::mt19937_64 random(seed);
    PlacedBuffers placed(problem);
    std::vector<std::pair<std::size_t, Bytes>> reference;
    for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
      const Lifetime& lifetime = problem.buffers[i].lifetime;
      RangeSet expected;
      for (const auto& [index, offset] : reference) {
        if (problem.buffers[index].lifetime.Overlaps(lifetime)) expected.emplace(offset, index);
      }
      const auto& found = placed.During(lifetime);
      EXPECT_EQ(ToSet(found), expected);
      EXPECT_TRUE(
          std::is_sorted(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; }));
      const auto offset = static_cast<Bytes>(random() % 100);
      placed.Insert(i, offset);
      reference.emplace_back(i, offset);
    }
  }
}

}  // namespace
}  // namespace livepool
