// The memory statistics of one device: upstream's, with the arenas counted in.
#pragma once

#include <functional>
#include <mutex>

#include "c10_compat.h"
#include "livepool/base/units.h"
#include "livepool/pool/arena_usage.h"

namespace livepool {

// Note [Combined peaks]
// The peak of a sum is not the sum of peaks. But where the arenas' part is constant, the peak of the sum is
// upstream's peak plus that constant. So time is cut into windows, at each change of what is mapped and at the begin
// and end of each pass; a window that closes leaves its peaks here, and upstream's start anew.
//  - memory_reserved and segments: the arenas' part is constant in a window. Exact, but for a segment that another
//    thread takes and gives back between the two calls to upstream which close one.
//  - memory_allocated, active, requested, allocation: between passes the arenas' part is what outlives passes, and
//    tensors that are freed in a window count until its end. In a pass it varies; the window gets the sum of both
//    peaks, the arenas' (exact: see UsageMeter) and upstream's. That is an upper bound: it is too high by at most what
//    upstream's part (outputs, misses) has grown or shrunk during the pass.
// Never too low: no moment's sum exceeds the peak that is reported.
//
// Note [What a slot counts as]
// Each request that a slot serves is one allocation of the large pool, and its free one free, as native counts them.
// Bytes are those of the slot (rounded to 512), for requested_bytes as well; the second of two tensors that share a
// slot in place adds none. An arena with memory is a large segment.
// Thread-safe. `slots` is called with the lock held: it may take no lock.
class CudaStats {
 public:
  CudaStats(c10_compat::CUDAAllocator& upstream, c10::DeviceIndex device, std::function<ArenaUsage()> slots)
      : upstream_(upstream), device_(device), slots_(std::move(slots)) {}

  // `bytes` more are mapped (fewer, if negative), by `arenas` more arenas.
  void ArenaChanged(Bytes bytes, int arenas);
  // A pass begins, or has ended and is still the holder of its arena.
  void CloseWindow();
  c10_compat::DeviceStats Get();
  void ResetPeak();
  void ResetAccumulated();
  // Upstream has counted an out-of-memory that the user does not see.
  void ForgiveOutOfMemory();

 private:
  c10_compat::DeviceStats SumLocked() const;
  void CloseWindowLocked();

  c10_compat::CUDAAllocator& upstream_;
  const c10::DeviceIndex device_;
  const std::function<ArenaUsage()> slots_;
  std::mutex mutex_;
  c10_compat::DeviceStats peaks_;  // of closed windows; only its peaks are used
  c10_compat::Stat mapped_;        // bytes
  c10_compat::Stat arenas_;        // that have memory mapped
  ArenaUsage before_;              // as of the last ResetAccumulated
  std::int64_t maps_ = 0;          // since then, as all that follows
  std::int64_t unmaps_ = 0;
  std::int64_t forgiven_ = 0;
};

}  // namespace livepool
