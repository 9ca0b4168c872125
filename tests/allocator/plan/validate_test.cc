#include "livepool/plan/validate.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "allocator/plan/test_problems.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

//   24 |    +---3---+          3 is fixed at 16. All plans of this file start from this good one.
//   16 |    |       |
//    8 |+-----2-----+          lower bound: 3 + 8 + 8 = 19 in [1, 2)
//    3 |+--1--+     +-4-+      height: 24
//    0 |+-----+     +---+
//       0   1 2     4   5
struct Case {
  Problem problem{{{.id = 1, .lifetime = {0, 2}, .size = 3},
                   {.id = 2, .lifetime = {0, 4}, .size = 8, .alignment = 8},
                   {.id = 3, .lifetime = {1, 4}, .size = 8, .alignment = 8, .fixed_offset = 16},
                   {.id = 4, .lifetime = {4, 5}, .size = 3}}};
  Plan plan{.offsets = {0, 8, 16, 0}, .height = 24, .lower_bound = 19, .algorithm = "by hand"};
};

TEST(Validate, AcceptsAGoodPlan) {
  const Case good;
  const PlanVerdict verdict = Validate(good.problem, good.plan);
  EXPECT_TRUE(verdict.ok());
  EXPECT_EQ(verdict.message, "");
  EXPECT_NO_THROW(CheckPlan(good.problem, good.plan));
}

TEST(Validate, AcceptsThePlanOfNothing) { EXPECT_TRUE(Validate({}, {}).ok()); }

// Each mutation breaks one rule of a good plan: the judge must see it.
struct Mutation {
  const char* name;
  std::function<void(Case&)> mutate;
  PlanFault fault;
  const char* message;
};

const Mutation kMutations[] = {
    {"SizeZero", [](Case& c) { c.problem.buffers[3].size = 0; }, PlanFault::kBadBuffer,
     "bad buffer: buffer 4 has size 0"},
    {"AlignmentZero", [](Case& c) { c.problem.buffers[3].alignment = 0; }, PlanFault::kBadBuffer,
     "bad buffer: buffer 4 has alignment 0"},
    {"EmptyLifetime", [](Case& c) { c.problem.buffers[3].lifetime = {5, 5}; }, PlanFault::kBadBuffer,
     "bad buffer: buffer 4 has the empty lifetime [5, 5)"},
    {"DuplicateId", [](Case& c) { c.problem.buffers[3].id = 1; }, PlanFault::kBadBuffer,
     "bad buffer: buffer 1 has the id of another buffer"},
    {"OffsetMissing", [](Case& c) { c.plan.offsets.pop_back(); }, PlanFault::kMissingOffset,
     "missing offset: 3 offsets for 4 buffers"},
    {"OffsetTooMany", [](Case& c) { c.plan.offsets.push_back(0); }, PlanFault::kMissingOffset,
     "missing offset: 5 offsets for 4 buffers"},
    {"Negative", [](Case& c) { c.plan.offsets[0] = -3; }, PlanFault::kNegative, "negative offset: buffer 1 lies at -3"},
    {"Beyond64Bits", [](Case& c) { c.plan.offsets[0] = std::numeric_limits<Bytes>::max() - 2; }, PlanFault::kNegative,
     "beyond 64 bits: buffer 1 lies at 9223372036854775805 with size 3"},
    {"Unaligned", [](Case& c) { c.plan.offsets[1] = 7; }, PlanFault::kAlignment,
     "alignment: buffer 2 lies at 7, not a multiple of 8"},
    {"Moved", [](Case& c) { c.plan.offsets[2] = 24; }, PlanFault::kMoved,
     "moved: buffer 3 lies at 24 but is fixed at 16"},
    {"OverlapFromBelow", [](Case& c) { c.plan.offsets[0] = 6; }, PlanFault::kOverlap,
     "overlap: buffer 1 in bytes [6, 9) alive [0, 2) and buffer 2 in bytes [8, 16) alive [0, 4)"},
    {"OverlapFromAbove", [](Case& c) { c.plan.offsets[0] = 15; }, PlanFault::kOverlap,
     "overlap: buffer 1 in bytes [15, 18) alive [0, 2) and buffer 2 in bytes [8, 16) alive [0, 4)"},
    {"OverlapInside", [](Case& c) { c.plan.offsets[0] = 10; }, PlanFault::kOverlap,
     "overlap: buffer 1 in bytes [10, 13) alive [0, 2) and buffer 2 in bytes [8, 16) alive [0, 4)"},
    {"OverlapExactly", [](Case& c) { c.problem.buffers[3].lifetime.birth = 1; }, PlanFault::kOverlap,
     "overlap: buffer 1 in bytes [0, 3) alive [0, 2) and buffer 4 in bytes [0, 3) alive [1, 5)"},
    {"OverlapLater",
     [](Case& c) {
       c.problem.buffers[3].lifetime.birth = 3;
       c.plan.offsets[3] = 21;
     },
     PlanFault::kOverlap,
     "overlap: buffer 3 in bytes [16, 24) alive [1, 4) and buffer 4 in bytes [21, 24) alive [3, 5)"},
    {"HeightTooLow", [](Case& c) { c.plan.height = 23; }, PlanFault::kHeight,
     "height: the plan says 23 but buffer 3 ends at 24"},
    {"HeightTooHigh", [](Case& c) { c.plan.height = 25; }, PlanFault::kHeight,
     "height: the plan says 25 but buffer 3 ends at 24"},
    {"HeightOfNothing",
     [](Case& c) { c = {.problem = {}, .plan = {.offsets = {}, .height = 1, .lower_bound = 0, .algorithm = ""}}; },
     PlanFault::kHeight, "height: the plan says 1 but there are no buffers"},
    {"BoundTooLow", [](Case& c) { c.plan.lower_bound = 18; }, PlanFault::kLowerBound,
     "lower bound: the plan says 18 but at most 19 bytes are alive at once"},
    {"BoundTooHigh", [](Case& c) { c.plan.lower_bound = 24; }, PlanFault::kLowerBound,
     "lower bound: the plan says 24 but at most 19 bytes are alive at once"},
    {"ProvedTooMuch", [](Case& c) { c.plan.proved_bound = 25; }, PlanFault::kProvedBound,
     "proved bound: the plan says that none is lower than 25 but has 24 itself"},
};

class ValidateTest : public ::testing::TestWithParam<Mutation> {};

TEST_P(ValidateTest, CatchesTheMutation) {
  Case bad;
  GetParam().mutate(bad);
  const PlanVerdict verdict = Validate(bad.problem, bad.plan);
  EXPECT_EQ(verdict.fault, GetParam().fault);
  EXPECT_EQ(verdict.message, GetParam().message);
  try {
    CheckPlan(bad.problem, bad.plan);
    FAIL() << "nothing was thrown";
  } catch (const InvalidPlan& error) {
    EXPECT_STREQ(error.what(), GetParam().message);
  }
}

INSTANTIATE_TEST_SUITE_P(Mutations, ValidateTest, ::testing::ValuesIn(kMutations),
                         [](const auto& test) { return std::string(test.param.name); });

// The sweep against the definition: some pair shares a byte while both live.
TEST(Validate, FindsAnOverlapExactlyIfThereIsOne) {
  int overlaps = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = testing::RandomProblem(seed, {.buffers = 6, .times = 12, .max_size = 8});
    std::vector<Bytes> offsets;
    for (const Buffer& buffer : problem.buffers) offsets.push_back((buffer.id * 37 + buffer.size * 11) % 40);
    bool expected = false;
    for (std::size_t a = 0; a < offsets.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        expected |= problem.buffers[a].lifetime.Overlaps(problem.buffers[b].lifetime) &&
                    offsets[a] < offsets[b] + problem.buffers[b].size &&
                    offsets[b] < offsets[a] + problem.buffers[a].size;
      }
    }
    const PlanVerdict verdict = Validate(problem, testing::PlanOf(problem, offsets));
    EXPECT_EQ(verdict.fault, expected ? PlanFault::kOverlap : PlanFault::kNone) << verdict.message;
    overlaps += expected ? 1 : 0;
  }
  // Both answers must have come up often, or the test says nothing.
  EXPECT_GT(overlaps, 50);
  EXPECT_LT(overlaps, 350);
}

}  // namespace
}  // namespace livepool
