#include "livepool/pool/arena_pool.h"

#include <algorithm>
#include <compare>

#include "livepool/base/error.h"
#include "livepool/pool/forked.h"

namespace livepool {

template <typename Function>
void ArenaPool::ForEach(const Function& function) const {
  const std::size_t count = count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) function(*arenas_[i]);
}

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
PlannedArena* ArenaPool::HoldFree(Bytes height, bool even_occupied) {
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
  for (const Candidate& candidate : candidates) {
    if (!even_occupied) break;
    if (arenas_[candidate.index]->TryHold()) return arenas_[candidate.index];
  }
  return nullptr;
}

PlannedArena& ArenaPool::Borrow(Bytes height) { return Borrow(height, /*even_occupied=*/false); }
PlannedArena& ArenaPool::BorrowEvenOccupied(Bytes height) { return Borrow(height, /*even_occupied=*/true); }

PlannedArena& ArenaPool::Borrow(Bytes height, bool even_occupied) {
  if (InForkedChild()) {
    throw ArenasExhausted("livepool: a forked process is served by PyTorch's own allocator alone", height);
  }
  try {
    PlannedArena* found = HoldFree(height, even_occupied);
    if (found == nullptr) {
      const std::lock_guard lock(mutex_);
      found = &MakeArenaLocked();
    }
    GrowHeld(*found, height);
    return *found;
  } catch (const OutOfMemory&) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    throw;
  }
}

bool ArenaPool::TryBorrow(PlannedArena& arena, Bytes height) {
  if (InForkedChild() || !arena.TryHold()) return false;
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
  const Bytes mapped = MappedBytes();
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
  if (InForkedChild() || !backend_->MayUnmap()) return 0;
  Bytes freed = 0;
  ForEach([&](PlannedArena& arena) { freed += arena.Trim(); });
  return freed;
}

void ArenaPool::CheckTrim() const {
  if (InForkedChild()) return;  // nothing is trimmed there, whatever threads held at the fork
  const auto refuse = [&](const std::string& why) {
    throw ArenaInUse("livepool: the arenas of " + device_.Name() + " cannot be trimmed now: " + why);
  };
  if (!backend_->MayUnmap()) refuse("a CUDA graph is being captured. Trim after the capture.");
  ForEach([&](const PlannedArena& arena) {
    if (arena.arena().pinned()) refuse("a CUDA graph lies over one. Drop the graph first.");
    if (arena.held()) refuse("a pass runs on one. Trim between passes.");
  });
}

void ArenaPool::Settle() const {
  ForEach([](PlannedArena& arena) { arena.Settle(); });
}

ArenaUsage ArenaPool::Usage() const {
  ArenaUsage sum;
  ForEach([&](const PlannedArena& arena) { sum += arena.Usage(); });
  return sum;
}

std::vector<ArenaPicture> ArenaPool::Pictures() const {
  std::vector<ArenaPicture> pictures;
  ForEach([&](PlannedArena& arena) { pictures.push_back(arena.Picture()); });
  return pictures;
}

Bytes ArenaPool::MappedBytes() const {
  Bytes mapped = 0;
  ForEach([&](const PlannedArena& arena) { mapped += arena.arena().mapped(); });
  return mapped;
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
  stats.refused = refused_.load(std::memory_order_relaxed);
  stats.arena_bytes = MappedBytes();
  stats.arena_peak_bytes = peak_.load(std::memory_order_relaxed);
  Settle();
  stats.live_bytes = Usage().live_bytes;
  return stats;
}

}  // namespace livepool
