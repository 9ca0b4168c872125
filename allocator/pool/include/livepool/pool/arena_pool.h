// All arenas of one device: passes borrow one each.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "livepool/pool/device.h"
#include "livepool/pool/planned_arena.h"

namespace livepool {

// Counts since the process began, over all passes of a device.
struct PoolStats {
  std::int64_t passes = 0;
  std::int64_t hits = 0;       // allocations served from a slot
  std::int64_t misses = 0;     // planned for a slot, or not foreseen at all, and served upstream
  std::int64_t upstream = 0;   // foreseen by the plan to go upstream (outputs, for example)
  std::int64_t refused = 0;    // passes for which no arena could be had, which ran on upstream's memory
  Bytes arena_bytes = 0;       // mapped now, over all arenas
  Bytes arena_peak_bytes = 0;  // the most that was mapped at once
  Bytes live_bytes = 0;        // in slots that are in use now

  // Of several devices. The peaks need not have been at one time.
  PoolStats& operator+=(const PoolStats& other) {
    passes += other.passes;
    hits += other.hits;
    misses += other.misses;
    upstream += other.upstream;
    refused += other.refused;
    arena_bytes += other.arena_bytes;
    arena_peak_bytes += other.arena_peak_bytes;
    live_bytes += other.live_bytes;
    return *this;
  }
  friend bool operator==(const PoolStats&, const PoolStats&) = default;
};

// Immortal: arenas are never destroyed, so that a deleter finds its arena at any time.
// Two passes at once never share an arena; passes one after the other do, so that the memory held is the
// largest plan, not the sum of all.
class ArenaPool {
 public:
  // `reserve`: bytes of address space for each arena. `on_pressure` is called when memory cannot be had
  // and should give back what is cached elsewhere (it may be empty); then the request is tried once more.
  ArenaPool(DeviceId device, std::unique_ptr<Backend> backend, Bytes reserve, std::function<void()> on_pressure = {});
  ~ArenaPool() = delete;

  DeviceId device() const { return device_; }
  Backend& backend() const { return *backend_; }

  // An arena with `height` bytes mapped, held by the calling thread, whose live slots below `height` have at most
  // `tolerated` bytes; none if that spares memory. What the thread had on loan there is lent no more. Throws
  // OutOfMemory, also if all kMaxArenas are taken, and in a forked child. Give it back with Return.
  PlannedArena& Borrow(Bytes height, Bytes tolerated = 0);
  // The same for one arena; false if somebody else holds it, or if a live slot lies below `height`.
  bool TryBorrow(PlannedArena& arena, Bytes height);
  void Return(PlannedArena& arena);

  // The arena that `address` lies in, or null. Wait-free.
  PlannedArena* Find(const void* address) const;

  // Gives the memory of idle arenas back to the device; returns the bytes. What a pass, a CUDA graph or a live
  // tensor needs stays, and everything while memory may not be unmapped (Backend::MayUnmap).
  Bytes Trim();
  // For a user who asks for a trim: throws ArenaInUse where a pass, a CUDA graph or a capture would keep an arena.
  // Live tensors keep what they need without an error.
  void CheckTrim() const;

  // Applies frees of other threads that wait for a pass; those on an arena on which a pass runs wait on.
  void Settle() const;
  // The sum over all arenas. Settle first, and it is exact for all arenas on which no pass runs.
  ArenaUsage Usage() const;
  Bytes MappedBytes() const;
  std::vector<ArenaPicture> Pictures() const;

  void Count(std::int64_t hits, std::int64_t misses, std::int64_t upstream);
  PoolStats Stats() const;

 private:
  PlannedArena* HoldFree(Bytes height, Bytes tolerated);  // null: there is none
  PlannedArena& MakeArenaLocked();
  void GrowHeld(PlannedArena& arena, Bytes height);
  void GrowOrThrow(PlannedArena& arena, Bytes height);
  template <typename Function>
  void ForEach(const Function& function) const;

  static constexpr std::size_t kMaxArenas = 64;  // passes that run at once, and arenas that live slots block

  const DeviceId device_;
  const std::unique_ptr<Backend> backend_;
  const Bytes reserve_;
  const std::function<void()> on_pressure_;
  std::mutex mutex_;  // for making arenas
  std::atomic<std::size_t> count_{0};
  std::vector<PlannedArena*> arenas_{std::vector<PlannedArena*>(kMaxArenas)};  // [0, count_) are set for ever
  std::atomic<std::int64_t> passes_{0}, hits_{0}, misses_{0}, upstream_{0}, refused_{0};
  std::atomic<Bytes> peak_{0};
};

}  // namespace livepool
