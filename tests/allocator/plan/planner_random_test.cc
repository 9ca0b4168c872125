// Properties of every plan, on random problems. A failure prints its seed, which gives the problem again.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "allocator/plan/test_problems.h"
#include "livepool/plan/planner.h"
#include "livepool/plan/validate.h"

namespace livepool {
namespace {

using testing::RandomProblem;
using testing::RandomShape;

struct NamedShape {
  const char* name;
  RandomShape shape;
};

const NamedShape kShapes[] = {
    {"Tiny", {.buffers = 4, .times = 5, .max_size = 4}},
    {"Plain", {}},
    {"Crowded", {.buffers = 60, .times = 3}},
    {"Aligned", {.alignments = true}},
    {"Fixed", {.fixed_offsets = true}},
    {"AlignedAndFixed", {.buffers = 50, .alignments = true, .fixed_offsets = true}},
};

class RandomPlanTest : public ::testing::TestWithParam<NamedShape> {
 protected:
  // Runs `property` on a hundred problems of the shape.
  template <typename Property>
  void ForRandomProblems(Property property) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      property(RandomProblem(seed, GetParam().shape), seed);
    }
  }
};

TEST_P(RandomPlanTest, IsValid) {
  ForRandomProblems(
      [](const Problem& problem, std::uint64_t) { EXPECT_EQ(Validate(problem, MakePlan(problem)).message, ""); });
}

TEST_P(RandomPlanTest, EveryRuleIsValid) {
  ForRandomProblems([](const Problem& problem, std::uint64_t) {
    const bool fixed = std::any_of(problem.buffers.begin(), problem.buffers.end(),
                                   [](const Buffer& buffer) { return buffer.fixed_offset.has_value(); });
    const PlannerOptions best_fit{.skyline = false, .offset_best_fit = true, .whole_slots = false};
    EXPECT_EQ(Validate(problem, MakePlan(problem, best_fit)).message, "");
    const PlannerOptions skyline{.skyline = true, .offset_best_fit = false, .whole_slots = false};
    EXPECT_EQ(Validate(problem, MakePlan(problem, skyline)).message, "");
    if (fixed) return;  // whole slots do not honour it
    const PlannerOptions slots{.skyline = false, .offset_best_fit = false, .whole_slots = true};
    EXPECT_EQ(Validate(problem, MakePlan(problem, slots)).message, "");
  });
}

TEST_P(RandomPlanTest, IsTheSameWhenMadeAgain) {
  ForRandomProblems([](const Problem& problem, std::uint64_t) { EXPECT_EQ(MakePlan(problem), MakePlan(problem)); });
}

TEST_P(RandomPlanTest, DoesNotDependOnTheOrderOfTheBuffers) {
  ForRandomProblems([](const Problem& problem, std::uint64_t seed) {
    Problem shuffled = problem;
    std::mt19937_64 random(seed);
    std::shuffle(shuffled.buffers.begin(), shuffled.buffers.end(), random);

    const Plan plan = MakePlan(problem);
    const Plan other = MakePlan(shuffled);
    EXPECT_EQ(plan.algorithm, other.algorithm);
    std::map<std::int64_t, Bytes> offset_of;
    for (std::size_t i = 0; i < problem.buffers.size(); ++i) offset_of[problem.buffers[i].id] = plan.offsets[i];
    for (std::size_t i = 0; i < shuffled.buffers.size(); ++i) {
      EXPECT_EQ(offset_of[shuffled.buffers[i].id], other.offsets[i]) << "buffer " << shuffled.buffers[i].id;
    }
  });
}

TEST_P(RandomPlanTest, DoesNotDependOnTheOriginOfTime) {
  ForRandomProblems([](const Problem& problem, std::uint64_t) {
    Problem later = problem;
    for (Buffer& buffer : later.buffers) {
      buffer.lifetime.birth -= 1'000;
      buffer.lifetime.death -= 1'000;
    }
    EXPECT_EQ(MakePlan(problem), MakePlan(later));
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, RandomPlanTest, ::testing::ValuesIn(kShapes),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace livepool
