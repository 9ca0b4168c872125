// How much of an arena tensors use: counted on the serving path, read by statistics.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "livepool/base/units.h"

namespace livepool {

// Bytes are those of slots, so two DataPtrs that share one (a planned in-place pair) count them once; `live` and
// `served` count DataPtrs, as torch counts allocations.
struct ArenaUsage {
  Bytes live_bytes = 0;
  Bytes peak_bytes = 0;    // the most that was live at once in the running pass; live_bytes while none runs
  Bytes served_bytes = 0;  // since the process began
  std::int64_t live = 0;
  std::int64_t peak = 0;
  std::int64_t served = 0;

  ArenaUsage& operator+=(const ArenaUsage& other) {
    live_bytes += other.live_bytes;
    peak_bytes += other.peak_bytes;
    served_bytes += other.served_bytes;
    live += other.live;
    peak += other.peak;
    served += other.served;
    return *this;
  }
  friend bool operator==(const ArenaUsage&, const ArenaUsage&) = default;
};

// The counters behind ArenaUsage. The holder of the arena writes, anybody reads: a count is a load and a store of
// the holder's own cache line, without a read-modify-write that other cores would have to wait for.
class alignas(64) UsageMeter {
 public:
  // A DataPtr was handed out; `bytes`: what became live by it.
  void Served(Bytes bytes) {
    Set(served_, Get(served_) + 1);
    Set(served_bytes_, Get(served_bytes_) + bytes);
    Raise(live_, peak_, 1);
    Raise(live_bytes_, peak_bytes_, bytes);
  }
  // `count` DataPtrs are gone, and with them `bytes` are live no more.
  void Freed(std::int64_t count, Bytes bytes) {
    Set(live_, Get(live_) - count);
    Set(live_bytes_, Get(live_bytes_) - bytes);
  }
  // From now on the peaks are those since this moment.
  void StartPeak() {
    Set(peak_, Get(live_));
    Set(peak_bytes_, Get(live_bytes_));
  }

  // Each figure is right; while the holder serves, two of them may be of different moments.
  ArenaUsage Read() const {
    return {.live_bytes = Get(live_bytes_),
            .peak_bytes = Get(peak_bytes_),
            .served_bytes = Get(served_bytes_),
            .live = Get(live_),
            .peak = Get(peak_),
            .served = Get(served_)};
  }
  Bytes live_bytes() const { return Get(live_bytes_); }

 private:
  using Counter = std::atomic<std::int64_t>;
  static std::int64_t Get(const Counter& counter) { return counter.load(std::memory_order_relaxed); }
  static void Set(Counter& counter, std::int64_t value) { counter.store(value, std::memory_order_relaxed); }
  static void Raise(Counter& counter, Counter& peak, std::int64_t amount) {
    const std::int64_t value = Get(counter) + amount;
    Set(counter, value);
    if (value > Get(peak)) Set(peak, value);
  }

  Counter live_{0}, peak_{0}, served_{0};
  Counter live_bytes_{0}, peak_bytes_{0}, served_bytes_{0};
};

}  // namespace livepool
