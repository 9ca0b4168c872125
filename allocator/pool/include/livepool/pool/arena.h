// One reserved address range of a device, with memory mapped up to the largest plan in use.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include "livepool/backend/backend.h"
#include "livepool/base/units.h"

namespace livepool {

// Addresses are stable over Grow and Trim. Invariant: 0 <= mapped() <= reserved(), both multiples of the
// backend's granularity; the mapped bytes are [base, base + mapped). Thread-safe.
//
// A pass pins first and grows then:
//     arena.Pin();
//     arena.Grow(plan.height);   // from here to Unpin, [base, base + height) has memory
//     ...
//     arena.Unpin();
class Arena {
 public:
  // Reserves `reserve` bytes of address space (rounded up) from `backend`, which must outlive the arena.
  // Throws OutOfMemory.
  Arena(Backend& backend, Bytes reserve);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  // The range is never released (see Backend); what is mapped stays mapped.
  ~Arena() = default;

  std::byte* base() const { return base_; }
  Bytes reserved() const { return reserved_; }
  Bytes mapped() const { return mapped_.load(std::memory_order_acquire); }
  Backend& backend() const { return backend_; }
  bool Contains(const void* address) const {
    const auto* byte = static_cast<const std::byte*>(address);
    return byte >= base_ && byte < base_ + reserved_;
  }

  // Maps memory so that mapped() >= bytes. Strong guarantee. Throws OutOfMemory, also above reserved().
  // Running out of memory unmaps nothing and waits for nothing, so a stream may be capturing.
  void Grow(Bytes bytes);
  // Unmaps down to `keep` bytes (rounded up); returns the bytes given back, 0 while pinned.
  // The caller has made sure that no device work still uses them.
  Bytes Trim(Bytes keep = 0);

  // While pinned (a pass runs, a CUDA graph over it lives), Trim does nothing. Pins nest. Pin waits for a
  // Trim that has begun, so that the Grow after it sees what that Trim took away; Unpin never waits.
  void Pin();
  void Unpin() { pins_.fetch_sub(1, std::memory_order_acq_rel); }
  bool pinned() const { return pins_.load(std::memory_order_acquire) > 0; }

 private:
  Backend& backend_;
  const Bytes reserved_;
  std::byte* const base_;
  std::mutex mutex_;  // held while mapped_ changes and while pins_ rises; never while serving
  std::atomic<Bytes> mapped_{0};
  std::atomic<int> pins_{0};
};

}  // namespace livepool
