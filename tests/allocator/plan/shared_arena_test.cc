#include "livepool/plan/shared_arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>

#include "allocator/plan/brute_force.h"
#include "allocator/plan/test_problems.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// 1 is a cache that lives through both passes; 2 is another buffer in each.
//
//   pass 0:   10 | +--3--+      pass 1:    7 | +--2--+
//              4 | +-2-+ |                 4 | |     +--+
//              0 | +--1--+                 0 | +---1----+
SharedArena TwoPasses() {
  return {.passes = {{{{.id = 1, .lifetime = {0, 9}, .size = 4},
                       {.id = 2, .lifetime = {0, 5}, .size = 6},
                       {.id = 3, .lifetime = {2, 9}, .size = 5}}},
                     {{{.id = 2, .lifetime = {0, 3}, .size = 3}, {.id = 1, .lifetime = {0, 4}, .size = 4}}}},
          .shared = {1}};
}

TEST(SharedArena, OneOffsetInAllPasses) {
  const SharedArena arena = TwoPasses();
  const SharedArenaPlan plan = MakeSharedArenaPlan(arena);
  EXPECT_EQ(Validate(arena, plan).message, "");
  EXPECT_EQ(plan.plans[0].offsets[0], plan.plans[1].offsets[1]);
  EXPECT_EQ(plan.height, 15);
  EXPECT_EQ(plan.plans[0].height, 15);
  EXPECT_EQ(plan.plans[1].height, 7);
  EXPECT_TRUE(plan.ProvedOptimal());
}

TEST(SharedArena, PassesThatShareNothingArePlannedOneByOne) {
  SharedArena arena{.passes = {testing::HandMade("SkylineWins"), testing::HandMade("AboveTheBound")}, .shared = {}};
  const SharedArenaPlan plan = MakeSharedArenaPlan(arena);
  EXPECT_EQ(Validate(arena, plan).message, "");
  EXPECT_EQ(plan.plans[0].offsets, MakePlan(arena.passes[0]).offsets);
  EXPECT_EQ(plan.plans[1].offsets, MakePlan(arena.passes[1]).offsets);
  EXPECT_EQ(plan.height, 10);
  EXPECT_TRUE(plan.ProvedOptimal());
  EXPECT_EQ(Validate(SharedArena{}, MakeSharedArenaPlan({})).message, "");
}

TEST(SharedArena, AFixedSharedBufferStays) {
  SharedArena arena = TwoPasses();
  arena.passes[0].buffers[0].fixed_offset = 3;
  arena.passes[1].buffers[1].fixed_offset = 3;
  const SharedArenaPlan plan = MakeSharedArenaPlan(arena);
  EXPECT_EQ(Validate(arena, plan).message, "");
  EXPECT_EQ(plan.plans[1].offsets[1], 3);
  EXPECT_EQ(plan.plans[1].height, 7);
}

TEST(SharedArena, RefusesWhatCannotBeOneBuffer) {
  SharedArena arena = TwoPasses();
  arena.shared = {2};
  EXPECT_THAT([&] { (void)MakeSharedArenaPlan(arena); },
              ThrowsMessage<InvalidInput>(HasSubstr("buffer 2: it is shared, but pass 1 has another size")));
  arena.shared = {77};
  EXPECT_THAT([&] { (void)MakeSharedArenaPlan(arena); },
              ThrowsMessage<InvalidInput>(HasSubstr("buffer 77: it is shared, but in no pass")));
  arena = TwoPasses();
  arena.passes[1].buffers[0].size = 0;
  EXPECT_THROW((void)MakeSharedArenaPlan(arena), InvalidInput);
}

// Passes of `buffers` buffers each, of which the first `shared` are one memory in all that have them.
SharedArena RandomArena(std::uint64_t seed, std::size_t passes, std::size_t buffers, std::size_t shared) {
  std::mt19937_64 random(seed);
  SharedArena arena;
  std::vector<Bytes> sizes;
  for (std::size_t i = 0; i < shared; ++i) {
    arena.shared.push_back(static_cast<std::int64_t>(i));
    sizes.push_back(1 + static_cast<Bytes>(random() % 6));
  }
  for (std::size_t pass = 0; pass < passes; ++pass) {
    Problem problem = testing::RandomProblem(random(), {.buffers = buffers, .times = 4, .max_size = 6});
    for (std::size_t i = 0; i < buffers; ++i) problem.buffers[i].id = static_cast<std::int64_t>(i);
    for (std::size_t i = 0; i < shared; ++i) problem.buffers[i].size = sizes[i];
    // Not every pass has every shared buffer, but one has all.
    if (pass > 0 && random() % 2 == 0) problem.buffers.erase(problem.buffers.begin());
    arena.passes.push_back(problem);
  }
  return arena;
}

TEST(SharedArena, PlansAreNearlyAlwaysTheBest) {
  constexpr int kArenas = 200;
  int best = 0;
  int proved = 0;
  for (std::uint64_t seed = 0; seed < kArenas; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const SharedArena arena = RandomArena(seed, 2, 4, 2);
    const SharedArenaPlan plan = MakeSharedArenaPlan(arena);
    EXPECT_EQ(Validate(arena, plan).message, "");
    const Bytes lowest = testing::BruteForce::LowestHeight(arena);
    EXPECT_GE(plan.height, lowest);
    EXPECT_LE(plan.lower_bound, lowest);
    best += plan.height == lowest ? 1 : 0;
    proved += plan.ProvedOptimal() ? 1 : 0;
  }
  EXPECT_GE(best, kArenas * 98 / 100);
  EXPECT_GE(proved, kArenas * 90 / 100);
}

TEST(SharedArena, LargerOnesAreValidAndTheSameAgain) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const SharedArena arena = RandomArena(seed, 4, 40, 5);
    const SharedArenaPlan plan = MakeSharedArenaPlan(arena);
    EXPECT_EQ(Validate(arena, plan).message, "");
    EXPECT_EQ(plan, MakeSharedArenaPlan(arena));
  }
}

// Caches that live all the time cost what they hold, and no more: under them all passes are as high as alone.
TEST(SharedArena, CachesLieAtTheBottom) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SharedArena arena{.passes = {}, .shared = {-1, -2}};
    Bytes highest = 0;
    for (std::uint64_t pass = 0; pass < 3; ++pass) {
      Problem problem = testing::RandomProblem(3 * seed + pass, {});
      highest = std::max(highest, MakePlan(problem).height);
      problem.buffers.push_back({.id = -1, .lifetime = {0, 100}, .size = 48});
      problem.buffers.push_back({.id = -2, .lifetime = {0, 100}, .size = 80});
      arena.passes.push_back(problem);
    }
    const SharedArenaPlan plan = MakeSharedArenaPlan(arena);
    EXPECT_EQ(Validate(arena, plan).message, "");
    EXPECT_LE(plan.height, highest + 128);
  }
}

struct Mutation {
  const char* name;
  std::function<void(SharedArenaPlan&)> mutate;
  PlanFault fault;
  const char* message;
};

const Mutation kMutations[] = {
    {"PlanMissing", [](auto& p) { p.plans.pop_back(); }, PlanFault::kMissingOffset,
     "missing plan: 1 plans for 2 passes"},
    {"FaultOfAPass", [](auto& p) { p.plans[1].offsets[0] = 0; }, PlanFault::kOverlap,
     "pass 1: overlap: buffer 2 in bytes [0, 3) alive [0, 3) and buffer 1 in bytes [0, 4) alive [0, 4)"},
    {"SharedMoved", [](auto& p) { p.plans[1].offsets = {0, 3}; }, PlanFault::kShared,
     "shared: buffer 1 lies at 3 in pass 1 but at 0 before"},
    {"HeightTooLow", [](auto& p) { p.height = 14; }, PlanFault::kHeight,
     "height: the plan says 14 but the highest pass has 15"},
    {"HeightTooHigh", [](auto& p) { p.height = 16; }, PlanFault::kHeight,
     "height: the plan says 16 but the highest pass has 15"},
    {"BoundTooLow", [](auto& p) { p.lower_bound = 14; }, PlanFault::kLowerBound,
     "lower bound: the plan says 14, not within [15, 15]"},
    {"BoundTooHigh", [](auto& p) { p.lower_bound = 16; }, PlanFault::kLowerBound,
     "lower bound: the plan says 16, not within [15, 15]"},
};

class SharedArenaMutationTest : public ::testing::TestWithParam<Mutation> {};

TEST_P(SharedArenaMutationTest, IsCaught) {
  const SharedArena arena = TwoPasses();
  SharedArenaPlan plan = MakeSharedArenaPlan(arena);
  ASSERT_EQ(Validate(arena, plan).message, "");
  ASSERT_EQ(plan.plans[0].offsets[0], 0);
  GetParam().mutate(plan);
  EXPECT_EQ(Validate(arena, plan).fault, GetParam().fault);
  EXPECT_EQ(Validate(arena, plan).message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(Mutations, SharedArenaMutationTest, ::testing::ValuesIn(kMutations),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace livepool
