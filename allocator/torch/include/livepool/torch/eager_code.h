// Plain eager code that names no scopes: its passes are found, and their CPU tensors served from plans.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "livepool/eager/found_passes.h"

namespace livepool {

// From now on each thread's passes are found and served while it is in no scope, capture or replay (docs/eager.md). The
// environment variable LIVEPOOL=1 has Install do it. There is no way back; LIVEPOOL=0 has it do nothing.
// Throws NotInstalled if livepool is not installed for the CPU.
void ServeEagerCode();

struct EagerCodeStats {
  std::string why_not;  // why nothing is served, in words; empty: threads are served as they come
  std::int64_t threads = 0;
  std::int64_t serving = 0, looking = 0, asleep = 0;  // threads that have not ended
  std::int64_t allocations = 0;                       // of all threads, outside of scopes, captures and replays
  ScopeStats passes;                                  // of all threads (ScopeStats::Add)
};
EagerCodeStats StatsOfEagerCode();

namespace detail {

// What the calling thread is served by; null: nothing, as it has allocated nothing yet, or has ended.
FoundPasses* FoundPassesOfThread();

inline constinit std::atomic<bool> serves_eager_code{false};
inline bool ServesEagerCode() { return serves_eager_code.load(std::memory_order_relaxed); }
// Has the calling thread served from now on; nothing if it has been before, or if it records a graph. `frame`: any
// address of its stack. Nothing as well where there is no memory for it.
void JoinEagerCode(const void* frame) noexcept;

}  // namespace detail
}  // namespace livepool
