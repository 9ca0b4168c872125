// The height of the best plan, by trying everything: for problems of a few buffers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "livepool/plan/problem.h"

namespace livepool::testing {

// Of the best plans take one with the least sum of offsets. In it no buffer that may move can be put lower while the
// fixed ones, and those that lie lower, stay. So putting the buffers, in the sequence of their offsets, each into its
// lowest place gives that plan: and some sequence is that one.
class BruteForce {
 public:
  // Fixed offsets and alignments are honoured. O(n! n^2) for n buffers that may move.
  static Bytes LowestHeight(const Problem& problem) {
    BruteForce search(problem);
    search.Try();
    return search.best_;
  }

 private:
  struct Placed {
    const Buffer* buffer;
    Bytes offset;
  };

  explicit BruteForce(const Problem& problem) {
    for (const Buffer& buffer : problem.buffers) {
      if (buffer.fixed_offset) {
        placed_.push_back({&buffer, *buffer.fixed_offset});
      } else {
        open_.push_back(&buffer);
      }
    }
  }

  void Try() {
    Bytes height = 0;
    for (const Placed& each : placed_) height = std::max(height, each.offset + each.buffer->size);
    if (height >= best_) return;
    if (open_.empty()) {
      best_ = height;
      return;
    }
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const Buffer* next = open_[i];
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
      placed_.push_back({next, LowestPlace(*next)});
      Try();
      placed_.pop_back();
      open_.insert(open_.begin() + static_cast<std::ptrdiff_t>(i), next);
    }
  }

  Bytes LowestPlace(const Buffer& buffer) const {
    Bytes offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (const Placed& other : placed_) {
        if (!other.buffer->lifetime.Overlaps(buffer.lifetime)) continue;
        const Bytes end = other.offset + other.buffer->size;
        if (offset >= end || other.offset >= offset + buffer.size) continue;
        offset = AlignUp(end, buffer.alignment);
        moved = true;
      }
    }
    return offset;
  }

  std::vector<Placed> placed_;
  std::vector<const Buffer*> open_;
  Bytes best_ = std::numeric_limits<Bytes>::max();
};

}  // namespace livepool::testing
