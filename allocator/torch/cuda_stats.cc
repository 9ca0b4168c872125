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

// An arena is a large segment, and what it serves is of the large pool.
void Add(StatArray& array, const Stat& part) {
  for (const StatType type : {StatType::AGGREGATE, StatType::LARGE_POOL}) {
    Stat& stat = array[static_cast<std::size_t>(type)];
    stat.current += part.current;
    stat.peak += part.peak;
    stat.allocated += part.allocated;
    stat.freed += part.freed;
  }
}

// Mapped memory is constant in a window: its peak is the current value.
void AddConstant(StatArray& array, Stat part) {
  part.peak = part.current;
  Add(array, part);
}

void Change(Stat& stat, std::int64_t amount) {
  amount >= 0 ? stat.increase(static_cast<std::size_t>(amount)) : stat.decrease(static_cast<std::size_t>(-amount));
}

}  // namespace

DeviceStats CudaStats::SumLocked() const {
  DeviceStats stats = upstream_.getDeviceStats(device_);
  AddConstant(stats.reserved_bytes, mapped_);
  AddConstant(stats.segment, arenas_);
  const ArenaUsage slots = slots_();
  // What was live at the reset counts as freed later without having been allocated, as native's does.
  const Stat count{.current = slots.live,
                   .peak = slots.peak,
                   .allocated = slots.served - before_.served,
                   .freed = (slots.served - slots.live) - (before_.served - before_.live)};
  const Stat bytes{.current = slots.live_bytes,
                   .peak = slots.peak_bytes,
                   .allocated = slots.served_bytes - before_.served_bytes,
                   .freed = (slots.served_bytes - slots.live_bytes) - (before_.served_bytes - before_.live_bytes)};
  for (StatArray* array : {&stats.allocation, &stats.active}) Add(*array, count);
  for (StatArray* array : {&stats.allocated_bytes, &stats.active_bytes, &stats.requested_bytes}) Add(*array, bytes);
  stats.num_device_alloc += maps_;
  stats.num_device_free += unmaps_;
  stats.num_ooms -= forgiven_;
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

void CudaStats::CloseWindow() {
  const std::lock_guard lock(mutex_);
  CloseWindowLocked();
}

DeviceStats CudaStats::Get() {
  const std::lock_guard lock(mutex_);
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
  before_ = slots_();
  maps_ = unmaps_ = forgiven_ = 0;
}

void CudaStats::ForgiveOutOfMemory() {
  const std::lock_guard lock(mutex_);
  ++forgiven_;
}

}  // namespace livepool
