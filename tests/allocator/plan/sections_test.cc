#include "sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "allocator/plan/test_problems.h"
#include "livepool/plan/lower_bound.h"

namespace livepool {
namespace {

using ::testing::ElementsAre;

// The picture in sections.h.
//   A +--------+
//   B    +-----------+
//   C             +------+
//   D                       +--+
//     0  1     2  3  4   5  6  7
TEST(Sections, AreTheLargestSetsThatLiveTogether) {
  const Problem problem{{{.id = 1, .lifetime = {0, 2}, .size = 1},
                         {.id = 2, .lifetime = {1, 4}, .size = 10},
                         {.id = 3, .lifetime = {3, 5}, .size = 100},
                         {.id = 4, .lifetime = {6, 7}, .size = 1000}}};
  const Sections sections = CutIntoSections(problem);
  EXPECT_THAT(sections.live, ElementsAre(11, 110, 1000));
  EXPECT_THAT(sections.ranges,
              ElementsAre(SectionRange{0, 1}, SectionRange{0, 2}, SectionRange{1, 2}, SectionRange{2, 3}));
  EXPECT_THAT(PeaksAround(sections), ElementsAre(11, 110, 110, 1000));
}

TEST(Sections, OfNothingAreNone) { EXPECT_EQ(CutIntoSections({}).count(), 0U); }

// Ranges must tell exactly what lifetimes tell, and the fullest section is the peak.
TEST(Sections, KeepWhatMattersAboutTime) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = testing::RandomProblem(seed, {.buffers = 25});
    const Sections sections = CutIntoSections(problem);
    EXPECT_EQ(*std::max_element(sections.live.begin(), sections.live.end()), LowerBound(problem));
    EXPECT_LE(sections.count(), problem.buffers.size());
    for (std::size_t a = 0; a < problem.buffers.size(); ++a) {
      const SectionRange& range_a = sections.ranges[a];
      EXPECT_LT(range_a.begin, range_a.end);
      for (std::size_t b = 0; b < a; ++b) {
        const SectionRange& range_b = sections.ranges[b];
        EXPECT_EQ(range_a.begin < range_b.end && range_b.begin < range_a.end,
                  problem.buffers[a].lifetime.Overlaps(problem.buffers[b].lifetime));
      }
      const Bytes peak = *std::max_element(sections.live.begin() + static_cast<std::ptrdiff_t>(range_a.begin),
                                           sections.live.begin() + static_cast<std::ptrdiff_t>(range_a.end));
      EXPECT_EQ(PeaksAround(sections)[a], peak);
    }
  }
}

}  // namespace
}  // namespace livepool
