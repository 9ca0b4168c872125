#include "cuda_stats.h"

#include <gtest/gtest.h>

#include "allocator/torch/cuda_fake_upstream.h"

namespace livepool {
namespace {

class CudaStatsTest : public testing::Test {
 protected:
  c10_compat::Stat Reserved() { return stats_.Get(0).reserved_bytes[0]; }

  FakeUpstream upstream_;
  CudaStats stats_{upstream_, 0};
};

TEST_F(CudaStatsTest, CountsArenasAsReservedSegments) {
  upstream_.Reserve(10);
  stats_.ArenaChanged(100, 1);
  stats_.ArenaChanged(20, 0);
  const c10_compat::DeviceStats stats = stats_.Get(0);
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
  EXPECT_EQ(stats_.Get(0).allocated_bytes[0].peak, 40);
}

TEST_F(CudaStatsTest, ResetStartsFromWhatIsHeld) {
  stats_.ArenaChanged(50, 1);
  stats_.ArenaChanged(-30, 0);
  stats_.ResetPeak();
  EXPECT_EQ(Reserved().peak, 20);
}

TEST_F(CudaStatsTest, LiveSlotsAreAllocated) {
  upstream_.Allocate(1);
  EXPECT_EQ(stats_.Get(8).allocated_bytes[0].current, 9);
  EXPECT_EQ(stats_.Get(0).allocated_bytes[0].current, 1);
  EXPECT_EQ(stats_.Get(0).allocated_bytes[0].peak, 9);
}

TEST_F(CudaStatsTest, AccumulatedCountsStartAnew) {
  stats_.ArenaChanged(50, 1);
  stats_.ArenaChanged(-50, -1);
  EXPECT_EQ(Reserved().allocated, 50);
  EXPECT_EQ(Reserved().freed, 50);
  stats_.ResetAccumulated();
  EXPECT_EQ(Reserved().allocated, 0);
  EXPECT_EQ(stats_.Get(0).num_device_free, 0);
}

TEST_F(CudaStatsTest, DoesNotAskAnUpstreamThatIsNotInitialized) {
  upstream_.is_initialized = false;
  stats_.ArenaChanged(50, 1);
  EXPECT_TRUE(upstream_.calls.empty());
}

}  // namespace
}  // namespace livepool
