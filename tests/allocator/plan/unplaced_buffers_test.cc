#include "unplaced_buffers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace livepool {
namespace {

//   0 +---+               Ranks: 2, 0, 1.
//   1     +---+
//   2 +-----------+
//     0   1   2   3
TEST(UnplacedBuffers, GiveTheBestThatFits) {
  Sections sections;
  sections.ranges = {{0, 1}, {1, 2}, {0, 3}};
  sections.live = {0, 0, 0};
  const RangeTree tree(sections);
  UnplacedBuffers unplaced(tree, {2, 0, 1});
  EXPECT_EQ(unplaced.BestInside({0, 3}), 2U);
  EXPECT_EQ(unplaced.BestInside({0, 2}), 0U);
  EXPECT_EQ(unplaced.BestInside({1, 3}), 1U);
  EXPECT_EQ(unplaced.BestInside({2, 3}), std::nullopt);
  EXPECT_EQ(unplaced.BestInside({0, 3}, 1), 2U);
  EXPECT_EQ(unplaced.BestInside({0, 2}, 1), 1U);
  EXPECT_EQ(unplaced.BestInside({0, 2}, 0), 0U);
  const UnplacedBuffers::Fits not_2 = [](std::size_t buffer) { return buffer != 2; };
  EXPECT_EQ(unplaced.BestInside({0, 3}, not_2), 0U);
  EXPECT_EQ(unplaced.BestInside({0, 3}, 1, not_2), 1U);
  EXPECT_EQ(unplaced.BestInside({0, 3}, [](std::size_t) { return false; }), std::nullopt);
  unplaced.Remove(2);
  EXPECT_EQ(unplaced.BestInside({0, 3}), 0U);
  unplaced.Remove(0);
  unplaced.Remove(1);
  EXPECT_TRUE(unplaced.empty());
  EXPECT_EQ(unplaced.BestInside({0, 3}), std::nullopt);
}

TEST(UnplacedBuffers, OfSome) {
  Sections sections;
  sections.ranges = {{0, 1}, {1, 2}, {0, 3}};
  sections.live = {0, 0, 0};
  const RangeTree tree(sections);
  UnplacedBuffers unplaced(tree, {1, 0});
  EXPECT_EQ(unplaced.BestInside({0, 3}), 1U);
  unplaced.Remove(1);
  unplaced.Remove(0);
  EXPECT_TRUE(unplaced.empty());
  EXPECT_TRUE(UnplacedBuffers(tree, {}).empty());
  EXPECT_EQ(UnplacedBuffers(tree, {}).BestInside({0, 3}), std::nullopt);
}

TEST(UnplacedBuffers, EqualALinearScan) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    constexpr SectionIndex kSections = 12;
    Sections sections;
    sections.live.resize(kSections);
    for (std::size_t i = 0; i < 40; ++i) {
      const SectionIndex begin = random() % kSections;
      sections.ranges.push_back({begin, begin + 1 + random() % (kSections - begin)});
    }
    std::vector<std::size_t> left(sections.ranges.size());  // best first
    std::iota(left.begin(), left.end(), std::size_t{0});
    std::shuffle(left.begin(), left.end(), random);
    const RangeTree tree(sections);
    UnplacedBuffers unplaced(tree, left);
    while (!left.empty()) {
      for (SectionIndex begin = 0; begin < kSections; ++begin) {
        for (SectionIndex end = begin + 1; end <= kSections; ++end) {
          const auto best = std::find_if(left.begin(), left.end(), [&](std::size_t i) {
            return begin <= sections.ranges[i].begin && sections.ranges[i].end <= end;
          });
          EXPECT_EQ(unplaced.BestInside({begin, end}), best == left.end() ? std::nullopt : std::optional(*best));
          const SectionIndex covered = begin + (end - begin) / 3;
          const auto covering = std::find_if(left.begin(), left.end(), [&](std::size_t i) {
            const SectionRange& range = sections.ranges[i];
            return begin <= range.begin && range.end <= end && range.begin <= covered && covered < range.end;
          });
          EXPECT_EQ(unplaced.BestInside({begin, end}, covered),
                    covering == left.end() ? std::nullopt : std::optional(*covering));
          const auto overlapping = std::find_if(left.begin(), left.end(), [&](std::size_t i) {
            return sections.ranges[i].begin < end && begin < sections.ranges[i].end;
          });
          EXPECT_EQ(unplaced.BestOverlapping({begin, end}),
                    overlapping == left.end() ? std::nullopt : std::optional(*overlapping));
          const UnplacedBuffers::Fits even = [](std::size_t i) { return i % 2 == 0; };
          const auto fitting = std::find_if(left.begin(), left.end(), [&](std::size_t i) {
            return even(i) && begin <= sections.ranges[i].begin && sections.ranges[i].end <= end;
          });
          EXPECT_EQ(unplaced.BestInside({begin, end}, even),
                    fitting == left.end() ? std::nullopt : std::optional(*fitting));
        }
      }
      const auto out = left.begin() + static_cast<std::ptrdiff_t>(random() % left.size());
      unplaced.Remove(*out);
      left.erase(out);
    }
  }
}

}  // namespace
}  // namespace livepool
