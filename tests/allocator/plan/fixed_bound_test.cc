#include "fixed_bound.h"

#include <gtest/gtest.h>

#include "allocator/plan/brute_force.h"
#include "allocator/plan/test_problems.h"
#include "livepool/plan/lower_bound.h"

namespace livepool {
namespace {

TEST(FixedBound, IsNothingWithoutFixedBuffers) {
  EXPECT_EQ(FixedBound({}), 0);
  EXPECT_EQ(FixedBound(testing::HandMade("Chain")), 0);
}

TEST(FixedBound, TheTopOfAFixedBuffer) {
  EXPECT_EQ(FixedBound({{{.id = 1, .lifetime = {0, 1}, .size = 4, .fixed_offset = 8}}}), 12);
}

//  13 | +---2---+      2 fits below 1 nowhere, though the bytes alive at once are 9 and the fixed top is 8.
//   8 | +-1-+
//   4 | +-1-+
//       0   1   2
TEST(FixedBound, ALargeBufferMustGoAboveAFixedOne) {
  const Problem problem{
      {{.id = 1, .lifetime = {0, 1}, .size = 4, .fixed_offset = 4}, {.id = 2, .lifetime = {0, 2}, .size = 5}}};
  EXPECT_EQ(FixedBound(problem), 13);
}

//   2 lives beside 1, then beside 3: each leaves room for it, but not at one place.
//   8 |     +-3-+
//   4 | +-1-+
//       0   1   2
TEST(FixedBound, OnePlaceForAllOfALife) {
  const Problem problem{{{.id = 1, .lifetime = {0, 1}, .size = 4, .fixed_offset = 4},
                         {.id = 2, .lifetime = {0, 2}, .size = 4},
                         {.id = 3, .lifetime = {1, 2}, .size = 4, .fixed_offset = 1}}};
  EXPECT_EQ(FixedBound(problem), 12);
}

//   2 and 3 could each lie in [0, 4), but not both: 3 + 3 bytes, poured below and above 1, rise to 10. Nothing smaller
//   is there to use the gap of 1 that is left.
//   8 | +-1-+
//   4 | +-1-+
TEST(FixedBound, WhatDoesNotFitBelowTogether) {
  Problem problem{{{.id = 1, .lifetime = {0, 1}, .size = 4, .fixed_offset = 4},
                   {.id = 2, .lifetime = {0, 1}, .size = 3},
                   {.id = 3, .lifetime = {0, 1}, .size = 3}}};
  EXPECT_EQ(FixedBound(problem), 11);
  problem.buffers.push_back({.id = 4, .lifetime = {0, 1}, .size = 1});
  EXPECT_EQ(FixedBound(problem), 11);
}

TEST(FixedBound, AGapThatIsTooSmallIsLost) {
  const Problem problem{{{.id = 1, .lifetime = {0, 1}, .size = 4, .fixed_offset = 2},
                         {.id = 2, .lifetime = {0, 1}, .size = 3},
                         {.id = 3, .lifetime = {0, 1}, .size = 5}}};
  EXPECT_EQ(FixedBound(problem), 14);
}

TEST(FixedBound, IsNeverAboveTheBestPlan) {
  int tight = 0;
  int higher = 0;  // than the live bytes say
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = testing::RandomProblem(
        seed, {.buffers = 7, .times = 4, .max_size = 6, .alignments = seed % 2 == 1, .fixed_offsets = true});
    const Bytes best = testing::BruteForce::LowestHeight(problem);
    const Bytes bound = FixedBound(problem);
    EXPECT_LE(bound, best);
    tight += std::max(bound, LowerBound(problem)) == best ? 1 : 0;
    higher += bound > LowerBound(problem) ? 1 : 0;
  }
  EXPECT_GT(tight, 300);
  EXPECT_GT(higher, 100);
  RecordProperty("tight", tight);
}

}  // namespace
}  // namespace livepool
