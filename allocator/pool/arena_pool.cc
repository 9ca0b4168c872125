#include "livepool/pool/arena_pool.h"

#include <algorithm>
#include <compare>

#include "livepool/base/error.h"
#include "livepool/pool/forked.h"

namespace livepool {

ArenaPool::ArenaPool(DeviceId device, std::unique_ptr<Backend> backend, Bytes reserve,
                     std::function<void()> on_pressure)
    : device_(device), backend_(std::move(backend)), reserve_(reserve), on_pressure_(std::move(on_pressure)) {
  NoticeForks();
}

PlannedArena& ArenaPool::MakeArenaLocked() {
  const std::size_t count = count_.load(std::memory_order_relaxed);
  if (count == kMaxArenas) {
    throw ArenasExhausted("livepool: " + std::to_string(kMaxArenas) + " arenas of " + device_.Name() +
                              " are in use or hold live tensors; run fewer passes at once",
                          reserve_);
  }
  auto* arena = new PlannedArena(*backend_, reserve_);  // immortal, see the class comment
  (void)arena->TryHold();
  arenas_[count] = arena;
  count_.store(count + 1, std::memory_order_release);
  return *arena;
}

// Best fit: the smallest arena that has enough mapped, else the one that lacks least. Otherwise passes of several
// sizes at once would swap arenas until each arena has the size of the largest pass.
PlannedArena* ArenaPool::HoldFree(Bytes height) {
  struct Candidate {
    bool must_grow;
    Bytes distance;
    std::size_t index;
    auto operator<=>(const Candidate&) const = default;
  };
  std::vector<Candidate> candidates(count_.load(std::memory_order_acquire));
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Bytes spare = arenas_[i]->arena().mapped() - height;
    candidates[i] = {.must_grow = spare < 0, .distance = spare < 0 ? -spare : spare, .index = i};
  }
  std::sort(candidates.begin(), candidates.end());
  for (const Candidate& candidate : candidates) {
    PlannedArena& arena = *arenas_[candidate.index];
    if (!arena.TryHold()) continue;
    if (arena.RangeFree(height)) return &arena;
    arena.Release();
  }
  return nullptr;
}

PlannedArena& ArenaPool::Borrow(Bytes height) {
  if (InForkedChild()) {
    throw ArenasExhausted("livepool: a forked process is served by PyTorch's own allocator alone", height);
  }
  PlannedArena* found = HoldFree(height);
  if (found == nullptr) {
    const std::lock_guard lock(mutex_);
    found = &MakeArenaLocked();
  }
  GrowHeld(*found, height);
  return *found;
}

bool ArenaPool::TryBorrow(PlannedArena& arena, Bytes height) {
  if (!arena.TryHold()) return false;
  if (!arena.RangeFree(height)) {
    arena.Release();
    return false;
  }
  GrowHeld(arena, height);
  return true;
}

// Releases the arena if that fails.
void ArenaPool::GrowHeld(PlannedArena& arena, Bytes height) {
  try {
    GrowOrThrow(arena, height);
  } catch (...) {
    arena.Release();
    throw;
  }
}

void ArenaPool::GrowOrThrow(PlannedArena& arena, Bytes height) {
  if (height <= arena.arena().mapped()) return;
  try {
    arena.arena().Grow(height);
  } catch (const OutOfMemory&) {
    if (height > arena.arena().reserved()) throw;  // no memory would help
    // Idle memory goes before anything fails: that of other arenas, then what upstream has cached.
    Trim();
    if (on_pressure_) on_pressure_();
    arena.arena().Grow(height);
  }
  Bytes mapped = 0;
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) mapped += arenas_[i]->arena().mapped();
  Bytes peak = peak_.load(std::memory_order_relaxed);
  while (mapped > peak && !peak_.compare_exchange_weak(peak, mapped, std::memory_order_relaxed)) {
  }
}

void ArenaPool::Return(PlannedArena& arena) { arena.Release(); }

PlannedArena* ArenaPool::Find(const void* address) const {
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (arenas_[i]->arena().Contains(address)) return arenas_[i];
  }
  return nullptr;
}

Bytes ArenaPool::Trim() {
  if (InForkedChild()) return 0;
  Bytes freed = 0;
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    PlannedArena& arena = *arenas_[i];
    if (!arena.TryHold()) continue;
    freed += arena.TrimHeld();
    arena.Release();
  }
  return freed;
}

int ArenaPool::PinnedArenas() const {
  const std::size_t count = count_.load(std::memory_order_acquire);
  return static_cast<int>(std::count_if(arenas_.begin(), arenas_.begin() + static_cast<std::ptrdiff_t>(count),
                                        [](const PlannedArena* arena) { return arena->arena().pinned(); }));
}

void ArenaPool::Count(std::int64_t hits, std::int64_t misses, std::int64_t upstream) {
  passes_.fetch_add(1, std::memory_order_relaxed);
  hits_.fetch_add(hits, std::memory_order_relaxed);
  misses_.fetch_add(misses, std::memory_order_relaxed);
  upstream_.fetch_add(upstream, std::memory_order_relaxed);
}

PoolStats ArenaPool::Stats() const {
  PoolStats stats;
  stats.passes = passes_.load(std::memory_order_relaxed);
  stats.hits = hits_.load(std::memory_order_relaxed);
  stats.misses = misses_.load(std::memory_order_relaxed);
  stats.upstream = upstream_.load(std::memory_order_relaxed);
  stats.arena_peak_bytes = peak_.load(std::memory_order_relaxed);
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    stats.arena_bytes += arenas_[i]->arena().mapped();
    stats.live_bytes += arenas_[i]->LiveBytesAtRelease();
  }
  return stats;
}

}  // namespace livepool
