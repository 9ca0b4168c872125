#include "livepool/plan/lower_bound.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "allocator/plan/test_problems.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

TEST(LowerBound, OfNothingIsZero) { EXPECT_EQ(LowerBound({}), 0); }

//   A +-------+
//   B     +-------+
//   C         +---+
//     0   2   4   6
TEST(LowerBound, IsThePeakOfLiveBytes) {
  const Problem problem{{{.id = 1, .lifetime = {0, 4}, .size = 10},
                         {.id = 2, .lifetime = {2, 6}, .size = 20},
                         {.id = 3, .lifetime = {4, 6}, .size = 15}}};
  EXPECT_EQ(LowerBound(problem), 35);
}

TEST(LowerBound, DeathComesBeforeBirthAtTheSameTime) {
  const Problem problem{{{.id = 1, .lifetime = {0, 1}, .size = 10}, {.id = 2, .lifetime = {1, 2}, .size = 10}}};
  EXPECT_EQ(LowerBound(problem), 10);
}

TEST(LowerBound, IgnoresAlignmentAndFixedOffsets) {
  const Problem problem{{{.id = 1, .lifetime = {0, 1}, .size = 3, .alignment = 64, .fixed_offset = 640}}};
  EXPECT_EQ(LowerBound(problem), 3);
}

TEST(LowerBound, RefusesToOverflow) {
  constexpr Bytes kMax = std::numeric_limits<Bytes>::max();
  Problem problem{{{.id = 1, .lifetime = {0, 5}, .size = kMax}, {.id = 2, .lifetime = {5, 6}, .size = kMax}}};
  EXPECT_EQ(LowerBound(problem), kMax);
  problem.buffers[1].lifetime.birth = 4;
  EXPECT_THROW((void)LowerBound(problem), InvalidInput);
}

// By definition: at every time, the sum over all buffers.
Bytes BruteForce(const Problem& problem, Time last) {
  Bytes peak = 0;
  for (Time now = 0; now <= last; ++now) {
    Bytes live = 0;
    for (const Buffer& b : problem.buffers) {
      if (b.lifetime.birth <= now && now < b.lifetime.death) live += b.size;
    }
    peak = std::max(peak, live);
  }
  return peak;
}

TEST(LowerBound, EqualsBruteForceOnTinyProblems) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = testing::RandomProblem(seed, {.buffers = 1 + seed % 7, .times = 8, .max_size = 9});
    EXPECT_EQ(LowerBound(problem), BruteForce(problem, 16));
  }
}

}  // namespace
}  // namespace livepool
