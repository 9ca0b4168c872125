#include "cuda_open_pools.h"

#include <gtest/gtest.h>

#include "allocator/torch/cuda_fake_machine.h"
#include "livepool/torch/cuda_pass.h"

namespace livepool {
namespace {

constexpr c10_compat::MempoolId_t kA{0, 1};
constexpr c10_compat::MempoolId_t kB{0, 2};
cudaStream_t Stream(std::uintptr_t number) { return reinterpret_cast<cudaStream_t>(number); }
c10_compat::PoolFilter Only(cudaStream_t stream) {
  return [stream](cudaStream_t asked) { return asked == stream; };
}

TEST(OpenPoolsTest, CoversWhatTheFilterCovers) {
  OpenPools pools(FakeMachine::kMachine);
  EXPECT_FALSE(pools.Covers(Stream(1)));
  pools.Begin(kA, Only(Stream(1)), Stream(1), /*own=*/false);
  EXPECT_TRUE(pools.Covers(Stream(1)));
  EXPECT_FALSE(pools.Covers(Stream(2)));
  pools.End(kA);
  EXPECT_FALSE(pools.Covers(Stream(1)));
}

TEST(OpenPoolsTest, OwnCapturesAreOpenButServed) {
  OpenPools pools(FakeMachine::kMachine);
  pools.Begin(kA, Only(Stream(1)), Stream(1), /*own=*/true);
  EXPECT_FALSE(pools.Covers(Stream(1)));
}

TEST(OpenPoolsTest, ClosesTheInnermostOfEqualIds) {
  OpenPools pools(FakeMachine::kMachine);
  pools.Begin(kA, Only(Stream(1)), Stream(1), false);
  pools.Begin(kB, Only(Stream(2)), Stream(2), false);
  pools.Begin(kA, Only(Stream(3)), Stream(3), false);
  pools.End(kA);
  EXPECT_TRUE(pools.Covers(Stream(1)));
  EXPECT_TRUE(pools.Covers(Stream(2)));
  EXPECT_FALSE(pools.Covers(Stream(3)));
}

TEST(OpenPoolsTest, AnEndWithoutABeginIsIgnored) {
  OpenPools pools(FakeMachine::kMachine);
  pools.End(kA);
  EXPECT_FALSE(pools.Covers(Stream(1)));
}

// In a MemPool scope memory may be freed (row 8 of the field's faults), in a capture it may not (row 10).
TEST(OpenPoolsTest, TellsACaptureFromAMemPoolScope) {
  FakeMachine::Reset();
  OpenPools pools(FakeMachine::kMachine);
  pools.Begin(kA, Only(Stream(1)), Stream(1), false);
  EXPECT_FALSE(pools.Capturing());
  FakeMachine::captured = Stream(1);
  EXPECT_TRUE(pools.Capturing());
  pools.End(kA);
  EXPECT_FALSE(pools.Capturing());
  FakeMachine::Reset();
}

TEST(OwnCaptureScopeTest, Nests) {
  EXPECT_FALSE(InOwnCapture());
  {
    const OwnCaptureScope outer;
    { const OwnCaptureScope inner; }
    EXPECT_TRUE(InOwnCapture());
  }
  EXPECT_FALSE(InOwnCapture());
}

}  // namespace
}  // namespace livepool
