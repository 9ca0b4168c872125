// Programs as event streams, served by the real code: how much hits, and that no live byte is handed out twice.
//
//     EAGER_TEST_SEED=17 eager_test --gtest_filter='Simulation*'      replays one seed

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "eager/generated_programs.h"
#include "eager/simulator.h"

namespace livepool {
namespace {

using testing::Divergences;
using testing::EventStream;
using testing::GeneratedProgram;
using testing::ProgramOptions;
using testing::SimulationResult;
using testing::Simulator;

constexpr std::uint64_t kSeeds = 8;

// Calls `test` with each seed, or with EAGER_TEST_SEED alone.
template <typename Test>
void ForEachSeed(const Test& test) {
  const char* only = std::getenv("EAGER_TEST_SEED");
  const std::uint64_t first = only == nullptr ? 0 : std::strtoull(only, nullptr, 10);
  for (std::uint64_t seed = first; seed < (only == nullptr ? kSeeds : first + 1); ++seed) {
    SCOPED_TRACE("EAGER_TEST_SEED=" + std::to_string(seed));
    test(seed);
  }
}

SimulationResult Simulate(const ProgramOptions& options, int passes) {
  Simulator simulator;
  simulator.Run(GeneratedProgram(options).Passes(passes));
  return simulator.Result();
}

TEST(SimulationTest, OneShapeIsServedFromTheSecondPassOn) {
  ForEachSeed([](std::uint64_t seed) {
    const SimulationResult result = Simulate({.seed = seed}, 10);
    EXPECT_EQ(result.overlaps, 0);
    EXPECT_EQ(result.by_occurrence[0].hits, 0) << "there was no plan yet";
    EXPECT_GE(result.by_occurrence[1].Share(), 0.97) << "an arena is borrowed after a few matches";
    EXPECT_EQ(result.From(3).hits, result.From(3).plannable);
    EXPECT_EQ(result.scope.units, 1);
    EXPECT_LE(static_cast<double>(result.scope.arena_bytes),
              1.05 * static_cast<double>(result.scope.lower_bound_bytes));
    EXPECT_LE(result.arena_peak, AlignUp(result.scope.arena_bytes, 4_KiB)) << "one arena";
  });
}

TEST(SimulationTest, ShapesAtRandomShareOneArena) {
  ForEachSeed([](std::uint64_t seed) {
    const SimulationResult result = Simulate({.seed = seed, .shapes = 6}, 120);
    EXPECT_EQ(result.overlaps, 0);
    EXPECT_GE(result.From(4).Share(), 0.99);
    EXPECT_EQ(result.scope.units, 6);
    EXPECT_LE(result.arena_peak, AlignUp(result.scope.arena_bytes, 4_KiB)) << "the largest plan, not the sum";
  });
}

TEST(SimulationTest, ShapesThatBeginAlikeAreToldApartWhereTheyDiffer) {
  ForEachSeed([](std::uint64_t seed) {
    const SimulationResult result = Simulate({.seed = seed, .shapes = 4, .common_prefix = 10}, 120);
    EXPECT_EQ(result.overlaps, 0);
    EXPECT_GE(result.From(4).Share(), 0.96);
  });
}

struct DivergenceCase {
  std::string name;
  Divergences divergences;
  double at_least;  // share of hits from the fourth occurrence on
};

class DivergenceTest : public ::testing::TestWithParam<DivergenceCase> {};

TEST_P(DivergenceTest, CostsMissesAndNoByte) {
  ForEachSeed([&](std::uint64_t seed) {
    const SimulationResult result = Simulate({.seed = seed, .shapes = 3, .divergences = GetParam().divergences}, 150);
    EXPECT_EQ(result.overlaps, 0);
    EXPECT_GE(result.From(4).Share(), GetParam().at_least);
  });
}

INSTANTIATE_TEST_SUITE_P(Simulation, DivergenceTest,
                         ::testing::Values(DivergenceCase{"skipped", {.skipped = 0.005}, 0.9},
                                           DivergenceCase{"inserted", {.inserted = 0.005}, 0.9},
                                           DivergenceCase{"resized", {.resized = 0.005}, 0.9},
                                           DivergenceCase{"freed_late", {.freed_late = 0.01}, 0.77},
                                           DivergenceCase{"kept", {.kept = 0.0003}, 0.79},
                                           DivergenceCase{"throws", {.throws = 0.1}, 0.88},
                                           DivergenceCase{"branches", {.branches = 0.3}, 0.9},
                                           DivergenceCase{"all",
                                                          {.skipped = 0.01,
                                                           .inserted = 0.01,
                                                           .resized = 0.01,
                                                           .freed_late = 0.01,
                                                           .kept = 0.003,
                                                           .throws = 0.05,
                                                           .branches = 0.2},
                                                          0.3}),
                         [](const auto& each) { return each.param.name; });

// A cache that grows: its positions go upstream, and all others are served.
TEST(SimulationTest, SizesThatGrowLeaveTheOthersServed) {
  ForEachSeed([](std::uint64_t seed) {
    const SimulationResult result = Simulate({.seed = seed, .growing = 6}, 60);
    EXPECT_EQ(result.overlaps, 0);
    EXPECT_GE(result.From(4).Share(), 5.0 / 6 - 0.005);
  });
}

// What a pass keeps, or an exception, blocks its slots alone, and not the whole arena.
TEST(SimulationTest, SlotsThatStayInUseDoNotCostAnotherArena) {
  ForEachSeed([](std::uint64_t seed) {
    for (const Divergences& each : {Divergences{.kept = 0.0003}, Divergences{.throws = 0.1}}) {
      const SimulationResult result = Simulate({.seed = seed, .divergences = each}, 100);
      EXPECT_LT(2 * result.arena_peak, 3 * result.scope.arena_bytes) << "plans change, but two arenas were twice one";
    }
  });
}

struct FoundCase {
  std::string name;
  ProgramOptions options;
  double at_least;  // share of hits in the second half of the passes
};

class FoundTest : public ::testing::TestWithParam<FoundCase> {};

// The same programs, and nobody says where their passes begin.
TEST_P(FoundTest, PassesAreFound) {
  ForEachSeed([&](std::uint64_t seed) {
    ProgramOptions options = GetParam().options;
    options.seed = seed;
    Simulator simulator(64, testing::Passes::kFound);
    simulator.Run(GeneratedProgram(options).Passes(200));
    const SimulationResult result = simulator.Result();
    EXPECT_EQ(result.overlaps, 0);
    EXPECT_GE(result.SecondHalf().Share(), GetParam().at_least);
  });
}

INSTANTIATE_TEST_SUITE_P(Simulation, FoundTest,
                         ::testing::Values(FoundCase{"one_shape", {}, 0.99}, FoundCase{"shapes", {.shapes = 6}, 0.98},
                                           FoundCase{"steps", {.shapes = 3, .loop = testing::Loop::kSteps}, 0.98},
                                           FoundCase{"keeps", {.shapes = 3, .loop = testing::Loop::kKeeps}, 0.97},
                                           FoundCase{"flat", {.shapes = 3, .loop = testing::Loop::kFlat}, 0.97},
                                           FoundCase{"skipped", {.shapes = 3, .divergences = {.skipped = 0.005}}, 0.8},
                                           FoundCase{"resized", {.shapes = 3, .divergences = {.resized = 0.005}}, 0.9},
                                           FoundCase{
                                               "freed_late", {.shapes = 3, .divergences = {.freed_late = 0.01}}, 0.7},
                                           FoundCase{"throws", {.shapes = 3, .divergences = {.throws = 0.05}}, 0.9},
                                           FoundCase{"branches", {.shapes = 3, .divergences = {.branches = 0.3}}, 0.9},
                                           FoundCase{"all",
                                                     {.shapes = 3,
                                                      .divergences = {.skipped = 0.01,
                                                                      .inserted = 0.01,
                                                                      .resized = 0.01,
                                                                      .freed_late = 0.01,
                                                                      .kept = 0.003,
                                                                      .throws = 0.05,
                                                                      .branches = 0.2}},
                                                     0.2}),
                         [](const auto& each) { return each.param.name; });

// Nothing repeats: no plan is served, and no arena stays.
TEST(SimulationTest, AProgramThatNeverRepeatsGetsNoArena) {
  ForEachSeed([](std::uint64_t seed) {
    for (const auto passes : {testing::Passes::kScoped, testing::Passes::kFound}) {
      Simulator simulator(64, passes);
      simulator.Run(GeneratedProgram({.seed = seed, .divergences = {.resized = 1}}).Passes(60));
      EXPECT_EQ(simulator.Result().overlaps, 0);
      EXPECT_EQ(simulator.Result().arena_peak, 0);
    }
  });
}

}  // namespace
}  // namespace livepool
