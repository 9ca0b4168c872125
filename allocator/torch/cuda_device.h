// One GPU as the CUDA allocator sees it.
#pragma once

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cuda_arena_memory.h"
#include "cuda_open_pools.h"
#include "cuda_order.h"
#include "cuda_stats.h"
#include "livepool/pool/arena_pool.h"

namespace livepool {

// Immortal. Nothing here calls the driver before a pool is asked for.
class CudaDevice {
 public:
  CudaDevice(c10::DeviceIndex index, c10_compat::CUDAAllocator& upstream)
      : index_(index), upstream_(upstream), stats_(upstream, index) {}

  c10::DeviceIndex index() const { return index_; }

  // The device's arenas, made at the first call. Throws Error where the device cannot be used.
  ArenaPool& Pool();
  // The device's arenas, or null before Pool. Wait-free.
  ArenaPool* pool() const { return pool_.load(std::memory_order_acquire); }
  // Null before Pool.
  ArenaMemory* memory() const { return memory_.load(std::memory_order_acquire); }

  ArenaOrder& OrderOf(const PlannedArena& arena);
  OpenPools& open_pools() { return open_pools_; }
  c10_compat::DeviceStats Stats() { return stats_.Get(pool() == nullptr ? 0 : pool()->Stats().live_bytes); }
  CudaStats& stats() { return stats_; }
  double MemoryFraction();
  void SetMemoryFraction(double fraction);
  // Kernels on device `peer` may use this device's memory from now on.
  void AllowPeer(int peer);
  // The arenas that hold memory, as memory_viz shows them. Slots belong to the thread that runs a pass and
  // cannot be listed from here: each arena is one block, allocated while a pass or a CUDA graph needs it.
  std::vector<c10_compat::SegmentInfo> Segments() const;

  // Gives idle arenas back; returns the bytes. Does nothing while a graph may be captured on the device:
  // unmapping waits for the device, which would break the capture.
  Bytes Trim();

  // A slot of `arena` was served, or its tensor is about to be gone. Both throw nothing.
  void OnServed(void* slot, Bytes size) noexcept;
  void OnFreed(PlannedArena& arena, void* slot) noexcept;

 private:
  ArenaOrder* FindOrder(const PlannedArena& arena) const;
  void WaitIdle(const std::byte* address) noexcept;
  void ReportToProfiler(void* slot, Bytes change) noexcept;

  const c10::DeviceIndex index_;
  c10_compat::CUDAAllocator& upstream_;
  CudaStats stats_;
  OpenPools open_pools_;
  std::mutex mutex_;  // for making the pool and the orders, and for peers_
  std::vector<int> peers_;
  std::atomic<ArenaPool*> pool_{nullptr};
  std::atomic<ArenaMemory*> memory_{nullptr};
  std::atomic<ArenaOrder*> orders_{nullptr};
  std::mutex profiled_mutex_;
  std::unordered_map<void*, Bytes> profiled_;  // live slots that the profiler heard of
  std::atomic<std::size_t> profiled_count_{0};
};

// True once the process has begun to exit: no CUDA calls from then on.
bool ProcessIsExiting();

}  // namespace livepool
