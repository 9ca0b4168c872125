#include "cuda_memory_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/torch/cuda_fake_machine.h"
#include "allocator/torch/cuda_fake_upstream.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Of 1 GiB.
class MemoryLimitTest : public ::testing::Test {
 protected:
  FakeUpstream upstream_;
  MemoryLimit limit_{upstream_, FakeMachine::kMachine, 0};
};

TEST_F(MemoryLimitTest, WithoutOneUpstreamIsLeftAlone) {
  limit_.SetMapped(512_MiB);
  EXPECT_NO_THROW(limit_.Check(100_GiB));
  EXPECT_EQ(upstream_.fraction, 1);
  EXPECT_EQ(limit_.Fraction(), 1);
}

TEST_F(MemoryLimitTest, UpstreamGetsWhatTheArenasLeave) {
  limit_.SetBytes(512_MiB);
  EXPECT_DOUBLE_EQ(upstream_.fraction, 0.5);
  limit_.SetMapped(128_MiB);
  EXPECT_DOUBLE_EQ(upstream_.fraction, 0.375);
  limit_.SetBytes(64_MiB);
  EXPECT_EQ(upstream_.fraction, 0) << "less than is mapped";
  limit_.SetBytes(2_GiB);
  EXPECT_EQ(upstream_.fraction, 1) << "more than there is";
}

TEST_F(MemoryLimitTest, TheLowerOneHoldsAndTheUserReadsHisOwn) {
  limit_.SetFraction(0.5);
  limit_.SetBytes(256_MiB);
  EXPECT_DOUBLE_EQ(upstream_.fraction, 0.25);
  EXPECT_EQ(limit_.Fraction(), 0.5);
  limit_.SetFraction(0.125);
  EXPECT_DOUBLE_EQ(upstream_.fraction, 0.125);
  EXPECT_EQ(limit_.Fraction(), 0.125);
  limit_.SetBytes(std::nullopt);
  EXPECT_DOUBLE_EQ(upstream_.fraction, 0.125);
}

TEST_F(MemoryLimitTest, WhenItIsTakenAwayUpstreamHasItsOwnAgain) {
  upstream_.fraction = 0.75;  // of PYTORCH_CUDA_ALLOC_CONF
  limit_.SetBytes(256_MiB);
  EXPECT_EQ(limit_.Fraction(), 0.75);
  limit_.SetBytes(std::nullopt);
  EXPECT_DOUBLE_EQ(upstream_.fraction, 0.75);
  upstream_.fraction = 1;
  MemoryLimit other{upstream_, FakeMachine::kMachine, 0};
  other.SetBytes(256_MiB);
  other.SetBytes(std::nullopt);
  EXPECT_EQ(upstream_.fraction, 1);
}

TEST_F(MemoryLimitTest, CountsWhatUpstreamHasReserved) {
  limit_.SetBytes(512_MiB);
  upstream_.Reserve(300_MiB);
  limit_.SetMapped(100_MiB);
  EXPECT_NO_THROW(limit_.Check(112_MiB));
  EXPECT_THAT([&] { limit_.Check(113_MiB); },
              ThrowsMessage<OutOfMemory>(AllOf(HasSubstr("limit of 512.00 MiB"), HasSubstr("PyTorch holds 300.00 MiB"),
                                               HasSubstr("arenas 100.00 MiB"), HasSubstr("set_memory_limit"))));
}

TEST_F(MemoryLimitTest, IsNotedWhileUpstreamCannotBeTold) {
  upstream_.is_initialized = false;
  limit_.SetBytes(512_MiB);
  EXPECT_TRUE(upstream_.calls.empty());
  upstream_.is_initialized = true;
  limit_.Share();
  EXPECT_DOUBLE_EQ(upstream_.fraction, 0.5);
}

TEST_F(MemoryLimitTest, AFractionThatUpstreamRefusesChangesNothing) {
  limit_.SetBytes(512_MiB);
  EXPECT_THROW(limit_.SetFraction(2), c10::Error);
  EXPECT_EQ(limit_.Fraction(), 1);
  EXPECT_DOUBLE_EQ(upstream_.fraction, 0.5);
}

}  // namespace
}  // namespace livepool
