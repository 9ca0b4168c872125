#include "cuda_stats.h"

#include <algorithm>
#include <cstdlib>

namespace livepool {
namespace {

using c10_compat::DeviceStats;
using c10_compat::Stat;
using c10_compat::StatArray;
using c10_compat::StatType;

constexpr StatArray DeviceStats::*kArrays[] = {&DeviceStats::allocation,      &DeviceStats::segment,
                                               &DeviceStats::active,          &DeviceStats::inactive_split,
                                               &DeviceStats::allocated_bytes, &DeviceStats::reserved_bytes,
                                               &DeviceStats::active_bytes,    &DeviceStats::inactive_split_bytes,
                                               &DeviceStats::requested_bytes};
constexpr Stat DeviceStats::*kSingles[] = {&DeviceStats::oversize_allocations, &DeviceStats::oversize_segments};

void RaisePeak(Stat& stat, const Stat& other) { stat.peak = std::max(stat.peak, other.peak); }

// Raises every peak of `stats` to that of `other`.
void RaisePeaks(DeviceStats& stats, const DeviceStats& other) {
  for (const auto array : kArrays) {
    for (std::size_t i = 0; i < (stats.*array).size(); ++i) RaisePeak((stats.*array)[i], (other.*array)[i]);
  }
  for (const auto single : kSingles) RaisePeak(stats.*single, other.*single);
}

// The arenas' part, constant in a window. An arena is a large segment.
void Add(StatArray& array, std::int64_t current, std::int64_t allocated = 0, std::int64_t freed = 0) {
  for (const StatType type : {StatType::AGGREGATE, StatType::LARGE_POOL}) {
    Stat& stat = array[static_cast<std::size_t>(type)];
    stat.current += current;
    stat.peak += current;
    stat.allocated += allocated;
    stat.freed += freed;
  }
}

void Change(Stat& stat, std::int64_t amount) {
  amount >= 0 ? stat.increase(static_cast<std::size_t>(amount)) : stat.decrease(static_cast<std::size_t>(-amount));
}

}  // namespace

DeviceStats CudaStats::SumLocked() const {
  DeviceStats stats = upstream_.getDeviceStats(device_);
  Add(stats.reserved_bytes, mapped_.current, mapped_.allocated, mapped_.freed);
  Add(stats.segment, arenas_.current, arenas_.allocated, arenas_.freed);
  Add(stats.allocated_bytes, live_);
  Add(stats.active_bytes, live_);
  Add(stats.requested_bytes, live_);
  stats.num_device_alloc += maps_;
  stats.num_device_free += unmaps_;
  return stats;
}

void CudaStats::CloseWindowLocked() {
  if (!upstream_.initialized()) return;  // it has held nothing yet, and refuses to be asked
  RaisePeaks(peaks_, SumLocked());
  upstream_.resetPeakStats(device_);
}

void CudaStats::ArenaChanged(Bytes bytes, int arenas) {
  const std::lock_guard lock(mutex_);
  CloseWindowLocked();
  Change(mapped_, bytes);
  Change(arenas_, arenas);
  ++(bytes > 0 ? maps_ : unmaps_);
}

DeviceStats CudaStats::Get(Bytes live) {
  const std::lock_guard lock(mutex_);
  if (live != live_) {
    CloseWindowLocked();
    live_ = live;
  }
  DeviceStats stats = SumLocked();
  RaisePeaks(stats, peaks_);
  return stats;
}

void CudaStats::ResetPeak() {
  const std::lock_guard lock(mutex_);
  upstream_.resetPeakStats(device_);
  peaks_ = DeviceStats();
}

void CudaStats::ResetAccumulated() {
  const std::lock_guard lock(mutex_);
  upstream_.resetAccumulatedStats(device_);
  mapped_.reset_accumulated();
  arenas_.reset_accumulated();
  maps_ = unmaps_ = 0;
}

}  // namespace livepool
