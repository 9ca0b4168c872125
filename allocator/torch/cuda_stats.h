// The memory statistics of one device: upstream's, with the arenas counted in.
#pragma once

#include <mutex>

#include "c10_compat.h"
#include "livepool/base/units.h"

namespace livepool {

// Note [Combined peaks]
// The peak of a sum is not the sum of peaks. But what the arenas hold is constant between two changes of it,
// and within such a window the peak of the sum is upstream's peak in the window plus that constant. So at
// each change the window is closed: its peaks are kept here, and upstream's start anew.
//  - memory_reserved and segments: exact, but for a segment that another thread takes and gives back between
//    the two calls to upstream which close a window. That can happen only while an arena grows or shrinks.
//  - memory_allocated, active, requested: the arenas' part is the live slots' bytes as the pool knows them at
//    the end of each pass, sampled when statistics are read or a window closes. Tensors that live in slots
//    only inside a pass are thus not in the peak: their memory is the arena, which memory_reserved has.
// Thread-safe.
class CudaStats {
 public:
  CudaStats(c10_compat::CUDAAllocator& upstream, c10::DeviceIndex device) : upstream_(upstream), device_(device) {}

  // `bytes` more are mapped (fewer, if negative), by `arenas` more arenas.
  void ArenaChanged(Bytes bytes, int arenas);
  // `live`: bytes of live slots.
  c10_compat::DeviceStats Get(Bytes live);
  void ResetPeak();
  void ResetAccumulated();

 private:
  c10_compat::DeviceStats SumLocked() const;
  void CloseWindowLocked();

  c10_compat::CUDAAllocator& upstream_;
  const c10::DeviceIndex device_;
  std::mutex mutex_;
  c10_compat::DeviceStats peaks_;  // of closed windows; only its peaks are used
  c10_compat::Stat mapped_;        // bytes
  c10_compat::Stat arenas_;        // that have memory mapped
  Bytes live_ = 0;
  std::int64_t maps_ = 0;  // since ResetAccumulated
  std::int64_t unmaps_ = 0;
};

}  // namespace livepool
