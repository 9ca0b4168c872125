#include "cuda_stats.h"

#include <gtest/gtest.h>

#include "allocator/torch/cuda_fake_upstream.h"

namespace livepool {
namespace {

class CudaStatsTest : public testing::Test {
 protected:
  c10_compat::Stat Reserved() { return stats_.Get().reserved_bytes[0]; }

  FakeUpstream upstream_;
  ArenaUsage slots_;
  CudaStats stats_{upstream_, 0, [this] { return slots_; }};
};

TEST_F(CudaStatsTest, CountsArenasAsReservedSegments) {
  upstream_.Reserve(10);
  stats_.ArenaChanged(100, 1);
  stats_.ArenaChanged(20, 0);
  const c10_compat::DeviceStats stats = stats_.Get();
  EXPECT_EQ(stats.reserved_bytes[0].current, 130);
  EXPECT_EQ(stats.reserved_bytes[static_cast<std::size_t>(c10_compat::StatType::LARGE_POOL)].current, 120);
  EXPECT_EQ(stats.reserved_bytes[static_cast<std::size_t>(c10_compat::StatType::SMALL_POOL)].current, 0);
  EXPECT_EQ(stats.segment[0].current, 2);
  EXPECT_EQ(stats.num_device_alloc, 2);
}

TEST_F(CudaStatsTest, PeakIsThatOfTheSumAndNotTheSumOfPeaks) {
  upstream_.Reserve(100);
  upstream_.Reserve(-90);      // upstream's peak, without an arena
  stats_.ArenaChanged(50, 1);  // 60 held
  EXPECT_EQ(Reserved().peak, 100);
  stats_.ArenaChanged(70, 0);  // 130 held
  stats_.ArenaChanged(-120, -1);
  EXPECT_EQ(Reserved().peak, 130);
  EXPECT_EQ(Reserved().current, 10);
}

TEST_F(CudaStatsTest, SeesUpstreamsPeakBetweenTwoArenaChanges) {
  stats_.ArenaChanged(50, 1);
  upstream_.Reserve(30);
  upstream_.Reserve(-30);  // nobody asks while the sum is 80
  stats_.ArenaChanged(10, 0);
  EXPECT_EQ(Reserved().peak, 80);
}

TEST_F(CudaStatsTest, ClosingAWindowLosesNoPeakOfUpstream) {
  upstream_.Allocate(40);
  upstream_.Allocate(-40);
  stats_.ArenaChanged(10, 1);
  EXPECT_EQ(stats_.Get().allocated_bytes[0].peak, 40);
}

TEST_F(CudaStatsTest, ResetStartsFromWhatIsHeld) {
  stats_.ArenaChanged(50, 1);
  stats_.ArenaChanged(-30, 0);
  stats_.ResetPeak();
  EXPECT_EQ(Reserved().peak, 20);
}

TEST_F(CudaStatsTest, SlotsCountAsAllocationsOfTheLargePool) {
  upstream_.Allocate(1);
  slots_ = {.live_bytes = 8, .peak_bytes = 20, .served_bytes = 30, .live = 1, .peak = 2, .served = 5};
  const c10_compat::DeviceStats stats = stats_.Get();
  EXPECT_EQ(stats.allocated_bytes[0].current, 9);
  EXPECT_EQ(stats.allocated_bytes[0].peak, 21);
  EXPECT_EQ(stats.allocated_bytes[0].allocated, 31);
  EXPECT_EQ(stats.allocated_bytes[0].freed, 22);
  EXPECT_EQ(stats.allocation[0].current, 1);
  EXPECT_EQ(stats.allocation[0].peak, 2);
  EXPECT_EQ(stats.allocation[0].allocated, 5);
  EXPECT_EQ(stats.allocation[0].freed, 4);
  EXPECT_EQ(stats.allocation[static_cast<std::size_t>(c10_compat::StatType::LARGE_POOL)].allocated, 5);
  EXPECT_EQ(stats.active[0].current, 1);
  EXPECT_EQ(stats.active_bytes[0].current, 8);
  EXPECT_EQ(stats.requested_bytes[0].current, 8);
}

//   upstream   40 ─┐           ┌─ 10        The windows' peaks: 40, 10 + 20, 10.
//                  └─ 0        │
//   slots               20 in the pass
TEST_F(CudaStatsTest, APassesPeakIsAddedToUpstreamsOfThatTimeOnly) {
  upstream_.Allocate(40);
  upstream_.Allocate(-40);
  stats_.CloseWindow();  // the pass begins
  slots_ = {.live_bytes = 5, .peak_bytes = 20};
  upstream_.Allocate(10);
  stats_.CloseWindow();  // it ends
  slots_ = {};
  EXPECT_EQ(stats_.Get().allocated_bytes[0].peak, 40);
  stats_.ResetPeak();
  EXPECT_EQ(stats_.Get().allocated_bytes[0].peak, 10);
}

TEST_F(CudaStatsTest, KeepsThePeakOfAPassThatIsOver) {
  stats_.CloseWindow();
  slots_ = {.live_bytes = 0, .peak_bytes = 20};
  stats_.CloseWindow();
  slots_ = {};
  EXPECT_EQ(stats_.Get().allocated_bytes[0].peak, 20);
  EXPECT_EQ(stats_.Get().allocated_bytes[0].current, 0);
}

TEST_F(CudaStatsTest, AForgivenOutOfMemoryIsNotCounted) {
  upstream_.stats.num_ooms = 2;
  stats_.ForgiveOutOfMemory();
  EXPECT_EQ(stats_.Get().num_ooms, 1);
}

TEST_F(CudaStatsTest, AccumulatedCountsStartAnew) {
  stats_.ArenaChanged(50, 1);
  stats_.ArenaChanged(-50, -1);
  EXPECT_EQ(Reserved().allocated, 50);
  EXPECT_EQ(Reserved().freed, 50);
  stats_.ResetAccumulated();
  EXPECT_EQ(Reserved().allocated, 0);
  EXPECT_EQ(stats_.Get().num_device_free, 0);
}

TEST_F(CudaStatsTest, SlotsOfBeforeAResetAreNotAccumulatedButTheirFreesAre) {
  slots_ = {.live_bytes = 8, .served_bytes = 30, .live = 1, .served = 5};
  stats_.ResetAccumulated();
  EXPECT_EQ(stats_.Get().allocation[0].allocated, 0);
  EXPECT_EQ(stats_.Get().allocation[0].freed, 0);
  slots_.live = 0;
  EXPECT_EQ(stats_.Get().allocation[0].freed, 1);
}

TEST_F(CudaStatsTest, DoesNotAskAnUpstreamThatIsNotInitialized) {
  upstream_.is_initialized = false;
  stats_.ArenaChanged(50, 1);
  EXPECT_TRUE(upstream_.calls.empty());
}

}  // namespace
}  // namespace livepool
