#include "cuda_arena_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/torch/cuda_fake_machine.h"
#include "allocator/torch/cuda_fake_upstream.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ArenaMemoryTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_THAT(driver_.misuse(), IsEmpty()); }

  FakeDriver driver_;
  FakeUpstream upstream_;
  CudaStats stats_{upstream_, 0, [] { return ArenaUsage(); }};
  MemoryLimit limit_{upstream_, FakeMachine::kMachine, 0};
  std::vector<const std::byte*> waited_;
  ArenaMemory memory_{FakeDriver::table(),
                      0,
                      stats_,
                      limit_,
                      {.wait_idle =
                           [this](const std::byte* address) {
                             EXPECT_TRUE(driver_.IsAccessible(address));
                             waited_.push_back(address);
                           },
                       .may_unmap = [] { return true; }}};
};

TEST_F(ArenaMemoryTest, CountsEachArenaThatHoldsMemory) {
  std::byte* const a = memory_.Reserve(64_MiB);
  std::byte* const b = memory_.Reserve(64_MiB);
  memory_.Map(a, 4_MiB);
  memory_.Map(a + 4_MiB, 2_MiB);
  memory_.Map(b, 2_MiB);
  EXPECT_EQ(stats_.Get().reserved_bytes[0].current, 8_MiB);
  EXPECT_EQ(stats_.Get().segment[0].current, 2);
  memory_.Unmap(b, 2_MiB);
  EXPECT_EQ(stats_.Get().segment[0].current, 1);
}

TEST_F(ArenaMemoryTest, WaitsBeforeItUnmaps) {
  std::byte* const base = memory_.Reserve(8_MiB);
  memory_.Map(base, 8_MiB);
  memory_.Unmap(base + 4_MiB, 4_MiB);
  EXPECT_THAT(waited_, ElementsAre(base + 4_MiB));
}

TEST_F(ArenaMemoryTest, AFailedMapChangesNoStatistics) {
  std::byte* const base = memory_.Reserve(8_MiB);
  driver_.FailEvery("MemCreate", cuda::kOutOfMemory);
  EXPECT_THROW(memory_.Map(base, 4_MiB), OutOfMemory);
  EXPECT_EQ(stats_.Get().reserved_bytes[0].current, 0);
}

TEST_F(ArenaMemoryTest, TheFractionLimitsUpstreamAndArenasTogether) {
  limit_.SetFraction(0.5);  // 512 MiB
  EXPECT_DOUBLE_EQ(upstream_.fraction, 0.5);
  upstream_.Reserve(300_MiB);
  std::byte* const base = memory_.Reserve(1_GiB);
  EXPECT_THROW(memory_.Map(base, 256_MiB), OutOfMemory);
  memory_.Map(base, 128_MiB);
  EXPECT_DOUBLE_EQ(upstream_.fraction, 0.375);
  EXPECT_EQ(limit_.Fraction(), 0.5);
  memory_.Unmap(base, 128_MiB);
  EXPECT_DOUBLE_EQ(upstream_.fraction, 0.5);
}

TEST_F(ArenaMemoryTest, WithoutALimitUpstreamsIsLeftAlone) {
  std::byte* const base = memory_.Reserve(1_GiB);
  memory_.Map(base, 128_MiB);
  EXPECT_EQ(upstream_.fraction, 1);
  EXPECT_EQ(limit_.Fraction(), 1);
}

TEST_F(ArenaMemoryTest, PeersGetAccessToOldAndNewMemory) {
  std::byte* const base = memory_.Reserve(8_MiB);
  memory_.Map(base, 2_MiB);
  const int before = driver_.calls("MemSetAccess");
  memory_.AllowPeer(1);
  memory_.AllowPeer(1);
  EXPECT_EQ(driver_.calls("MemSetAccess"), before + 1);
  memory_.Map(base + 2_MiB, 2_MiB);
  EXPECT_EQ(driver_.calls("MemSetAccess"), before + 3);  // the device itself, and its peer
}

}  // namespace
}  // namespace livepool
