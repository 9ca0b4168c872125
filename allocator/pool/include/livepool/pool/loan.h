// Bytes of an arena that a pass has left to its caller.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "livepool/base/units.h"

namespace livepool {

// Note [Loans]
// A pass may leave its outputs where they lie in the arena. They are the caller's until the thread that ran the pass
// begins another one on that arena, whether he still holds the tensors or not:
//  1. For the passes of other threads a loan is a live slot like any other: they take another arena. The owner's next
//     pass ends it, and takes the arena.
//  2. The slot is given back once, by the tensor's deleter or by that pass, whichever comes first. So a tensor that
//     dies late frees nobody else's slot.
//  3. A tensor that outlives its loan sees what comes to lie there. The bytes stay mapped until it is gone.
// Both the arena and the tensor hold the loan (std::shared_ptr).
class Loan {
 public:
  // Of [begin, begin + size), lent to the calling thread.
  Loan(const std::byte* begin, Bytes size);
  // Of no bytes of an arena, so that it is in nobody's way.
  Loan() : Loan(nullptr, 0) {}
  virtual ~Loan() = default;
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  enum class By { kPass, kTensor };
  // Any thread: gives the bytes back, at the first call.
  void End(By who) noexcept {
    if (ended_.exchange(true, std::memory_order_acq_rel)) return;
    GiveBack(who);
    given_back_.store(true, std::memory_order_release);
  }
  bool Mine() const;
  // True for a byte below `end` that is still lent, or just being given back.
  bool LentBelow(const std::byte* end) const {
    return begin_ != nullptr && begin_ < end && !given_back_.load(std::memory_order_acquire);
  }
  // Null for a loan of no bytes.
  const std::byte* end() const { return begin_ + size_; }

 private:
  virtual void GiveBack(By who) noexcept = 0;

  const std::byte* const begin_;
  const Bytes size_;
  const std::uint64_t owner_;
  std::atomic<bool> ended_{false};
  std::atomic<bool> given_back_{false};
};

}  // namespace livepool
