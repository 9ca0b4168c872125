#include "check_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "allocator/plan/test_problems.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

constexpr Bytes kMax = std::numeric_limits<Bytes>::max();

// Two good buffers; each case spoils them.
Problem Good() {
  return {{{.id = 3, .lifetime = {0, 4}, .size = 8, .alignment = 4, .fixed_offset = 8},
           {.id = 5, .lifetime = {2, 6}, .size = 4}}};
}

struct BadCase {
  const char* name;
  std::function<void(std::vector<Buffer>&)> spoil;
  const char* message;
};

const BadCase kBadCases[] = {
    {"SizeZero", [](auto& b) { b[1].size = 0; }, "buffer 5: size 0 is not positive; leave such buffers out"},
    {"SizeNegative", [](auto& b) { b[1].size = -4; }, "buffer 5: size -4 is not positive; leave such buffers out"},
    {"AlignmentZero", [](auto& b) { b[1].alignment = 0; }, "buffer 5: alignment 0 is not positive; 1 means none"},
    {"EmptyLifetime", [](auto& b) { b[1].lifetime = {2, 2}; },
     "buffer 5: lifetime [2, 2) is empty; its death must come after its birth"},
    {"BackwardLifetime", [](auto& b) { b[1].lifetime = {2, 1}; },
     "buffer 5: lifetime [2, 1) is empty; its death must come after its birth"},
    {"NegativeFixedOffset", [](auto& b) { b[0].fixed_offset = -8; }, "buffer 3: fixed offset -8 is negative"},
    {"UnalignedFixedOffset", [](auto& b) { b[0].fixed_offset = 6; },
     "buffer 3: fixed offset 6 is not a multiple of its alignment 4"},
    {"DuplicateId", [](auto& b) { b[1].id = 3; }, "buffer 3: two buffers have this id"},
    {"FixedBeyond64Bits", [](auto& b) { b[0].fixed_offset = kMax - 7; },
     "buffer 3: fixed offset + size passes 64 bits"},
    {"SumBeyond64Bits", [](auto& b) { b[1].size = kMax; },
     "buffer 5: with it, the sizes (with alignment) sum past 64 bits"},
    {"AlignmentBeyond64Bits", [](auto& b) { b[1].alignment = kMax; },
     "buffer 5: with it, the sizes (with alignment) sum past 64 bits"},
    {"FixedOverlap", [](auto& b) { b[1].fixed_offset = 15; },
     "buffer 5: its fixed offset shares bytes with buffer 3, which is fixed too and alive at the same time"},
};

class CheckProblemTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(CheckProblemTest, Refuses) {
  Problem problem = Good();
  GetParam().spoil(problem.buffers);
  try {
    CheckProblem(problem);
    FAIL() << "nothing was thrown";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), GetParam().message);
  }
}

INSTANTIATE_TEST_SUITE_P(BadCases, CheckProblemTest, ::testing::ValuesIn(kBadCases),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(CheckProblem, AcceptsGoodOnes) {
  EXPECT_NO_THROW(CheckProblem(Good()));
  for (const testing::NamedProblem& named : testing::HandMadeProblems()) {
    SCOPED_TRACE(named.name);
    EXPECT_NO_THROW(CheckProblem(named.problem));
  }
}

TEST(CheckProblem, FixedBuffersMayShareBytesAtDifferentTimesAndTouch) {
  Problem problem = Good();
  problem.buffers[1].fixed_offset = 16;  // above [8, 16)
  EXPECT_NO_THROW(CheckProblem(problem));
  problem.buffers[1] = {.id = 5, .lifetime = {4, 6}, .size = 4, .fixed_offset = 8};
  EXPECT_NO_THROW(CheckProblem(problem));
}

}  // namespace
}  // namespace livepool
