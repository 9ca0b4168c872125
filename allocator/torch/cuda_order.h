// Order on the device between those who use one arena after another.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "livepool/pool/planned_arena.h"

namespace livepool {

// Note [A slot's next owner runs after its last user]
// Inside a pass all slots are used on the pass's stream, which orders them. Three other cases:
//  1. The next pass runs on another stream: it waits for the event that the last one recorded at its end.
//  2. A slot outlives its pass: kernels that use it may come after that event. The next pass waits for the
//     last pass's stream as it is then; passes go on doing so for each such stream until no slot is live.
//  3. record_stream named another stream: when the slot's tensor is freed, an event is recorded on that stream
//     and the running pass's stream waits for it; with no pass running, the last pass's stream does, and
//     thereby the next pass (case 2). A tensor that takes the slot in place, before the free, waits then.
// Case 3 in a capture of the pass: if the other stream is not part of it, no edge of the graph can express the
// wait. CUDA then invalidates the capture, which is right, as its replays would race.
// Thread-safe. Functions that deleters call throw nothing.
class ArenaOrder {
 public:
  // `next`: orders of one device form a list that only grows.
  ArenaOrder(int device, const PlannedArena& arena, ArenaOrder* next) : device_(device), arena_(arena), next_(next) {}

  const PlannedArena& arena() const { return arena_; }
  ArenaOrder* next() const { return next_; }
  cudaStream_t stream() const { return stream_.load(std::memory_order_relaxed); }

  // The caller holds the arena.
  void BeginPass(cudaStream_t stream);
  void EndPass(cudaStream_t stream) noexcept;
  // The slot at `slot` is used on `stream` as well, until it is freed.
  void Use(const void* slot, cudaStream_t stream);
  // A pass has got the slot at `slot`; without record_stream since, this is one load.
  void Served(const void* slot) noexcept {
    if (used_slots_.load(std::memory_order_relaxed) > 0) Settle(slot);
  }
  // A tensor on the slot at `slot` is about to be gone.
  void Freed(const void* slot) noexcept;
  // Bytes that no slot covers, last used on `user`, are given back: what runs on the arena next waits for `user`.
  void GivenBack(cudaStream_t user) noexcept;
  // Blocks until nobody uses the arena on the device; legal while some other stream is being captured.
  void WaitIdle() noexcept;

 private:
  void WaitForOthersLocked(cudaStream_t stream);
  void Settle(const void* slot) noexcept;
  void SettleLocked(cudaStream_t user, cudaStream_t stream) noexcept;

  const int device_;
  const PlannedArena& arena_;
  ArenaOrder* const next_;
  std::atomic<cudaStream_t> stream_{nullptr};  // of the running pass, or of the last one
  std::atomic<bool> running_{false};
  std::atomic<bool> used_since_{false};  // case 2: last_use_ is older than the last use
  std::atomic<int> used_slots_{0};       // size of users_
  std::mutex mutex_;                     // guards what follows
  cudaEvent_t last_use_ = nullptr;       // null before the end of the first pass
  std::vector<cudaStream_t> late_;       // case 2: former passes' streams whose slots were live at a BeginPass
  std::unordered_map<const void*, std::vector<cudaStream_t>> users_;  // case 3
  std::vector<cudaEvent_t> pending_;  // case 3, where the last stream could not wait; the next pass does
  std::vector<cudaEvent_t> spare_;
};

// Makes `device` current for a scope. Unlike c10's guard it never throws.
class OnDevice {
 public:
  explicit OnDevice(int device) noexcept : device_(device) {
    if (cudaGetDevice(&previous_) == cudaSuccess && previous_ != device_) (void)cudaSetDevice(device_);
  }
  ~OnDevice() {
    if (previous_ >= 0 && previous_ != device_) (void)cudaSetDevice(previous_);
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  const int device_;
  int previous_ = -1;
};

// True while `stream` is being captured into a graph.
bool IsCapturing(cudaStream_t stream) noexcept;

}  // namespace livepool
