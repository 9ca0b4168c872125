// One GPU as the CUDA allocator sees it.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cuda_arena_memory.h"
#include "cuda_history.h"
#include "cuda_machine.h"
#include "cuda_memory_limit.h"
#include "cuda_open_pools.h"
#include "cuda_order.h"
#include "cuda_stats.h"
#include "livepool/pool/arena_pool.h"

namespace livepool {

// Immortal. Nothing here calls the driver before a pool is asked for.
class CudaDevice {
 public:
  // What all devices share; outlives them.
  struct Surroundings {
    c10_compat::CUDAAllocator& upstream;
    const CudaMachine& machine;
    SlotHistory& history;
    std::function<bool()> capturing;  // true while any device's graph is captured
  };
  CudaDevice(c10::DeviceIndex index, const Surroundings& around);

  c10::DeviceIndex index() const { return index_; }

  // The device's arenas, made at the first call. Throws Error where the device cannot be used.
  ArenaPool& Pool();
  // The device's arenas, or null before Pool. Wait-free.
  ArenaPool* pool() const { return pool_.load(std::memory_order_acquire); }

  ArenaOrder& OrderOf(const PlannedArena& arena);
  OpenPools& open_pools() { return open_pools_; }
  const OpenPools& open_pools() const { return open_pools_; }
  MemoryLimit& limit() { return limit_; }
  CudaStats& stats() { return stats_; }
  c10_compat::DeviceStats Stats();
  // Kernels on device `peer` may use this device's memory from now on.
  void AllowPeer(int peer);
  // The arenas that hold memory, as memory_viz shows them: live slots are allocated blocks, what a CUDA graph needs
  // beside them is active, the rest inactive. An arena on which another thread's pass runs is one allocated block.
  std::vector<c10_compat::SegmentInfo> Segments() const;
  // What the arenas hold, in one line; empty where they hold nothing.
  std::string Describe() const;

  // Gives idle arenas back; returns the bytes. Does nothing while a graph may be captured: unmapping waits for the
  // device, which would break the capture.
  Bytes Trim() { return pool() == nullptr ? 0 : pool()->Trim(); }

  // A slot of `arena` was served, or its tensor is about to be gone. Both throw nothing.
  void OnServed(const PlannedArena& arena, void* slot, Bytes size, cudaStream_t stream) noexcept;
  void OnFreed(const PlannedArena& arena, void* slot) noexcept;

 private:
  struct Noted {  // a live slot that the profiler or the history heard of
    Bytes size = 0;
    cudaStream_t stream = nullptr;
  };

  ArenaOrder* FindOrder(const PlannedArena& arena) const;
  bool MayUnmap() const;
  void WaitIdle(const std::byte* address) noexcept;
  void Note(void* slot, const Noted& note) noexcept;
  void ReportToProfiler(void* slot, Bytes change) noexcept;

  const c10::DeviceIndex index_;
  const Surroundings around_;
  CudaStats stats_;
  MemoryLimit limit_;
  OpenPools open_pools_;
  std::mutex mutex_;  // for making the pool and the orders, and for peers_
  std::vector<int> peers_;
  std::atomic<ArenaPool*> pool_{nullptr};
  std::atomic<ArenaMemory*> memory_{nullptr};
  std::atomic<ArenaOrder*> orders_{nullptr};
  std::mutex noted_mutex_;
  std::unordered_multimap<void*, Noted> noted_;  // two for a slot that an in-place pair shares
  std::atomic<std::size_t> noted_count_{0};
};

// True once the process has begun to exit: no CUDA calls from then on.
bool ProcessIsExiting();

}  // namespace livepool
