// The height of the best plan, by trying everything: for problems of a few buffers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "livepool/plan/problem.h"
#include "livepool/plan/shared_arena.h"

namespace livepool::testing {

// Of the best plans take one with the least sum of offsets. In it nothing that may move can be put lower while what is
// fixed, and what lies lower, stays. So putting the buffers, in the sequence of their offsets, each into its lowest
// place gives that plan: and some sequence is that one.
class BruteForce {
 public:
  // Fixed offsets and alignments are honoured. O(n! n^2) for n buffers that may move.
  static Bytes LowestHeight(const Problem& problem) {
    return LowestHeight(SharedArena{.passes = {problem}, .shared = {}});
  }
  static Bytes LowestHeight(const SharedArena& arena) {
    BruteForce search(arena);
    search.Try();
    return search.best_;
  }

 private:
  struct Item {
    Buffer buffer;
    std::vector<std::pair<std::size_t, Lifetime>> lives;  // pass, and when in it
    Bytes offset = 0;

    bool Meets(const Item& other) const {
      for (const auto& [pass, life] : lives) {
        for (const auto& [other_pass, other_life] : other.lives) {
          if (pass == other_pass && life.Overlaps(other_life)) return true;
        }
      }
      return false;
    }
  };

  explicit BruteForce(const SharedArena& arena) {
    std::vector<Item> items;
    for (std::size_t pass = 0; pass < arena.passes.size(); ++pass) {
      for (const Buffer& buffer : arena.passes[pass].buffers) {
        const bool shared = std::find(arena.shared.begin(), arena.shared.end(), buffer.id) != arena.shared.end();
        auto item = std::find_if(items.begin(), items.end(),
                                 [&](const Item& other) { return shared && other.buffer.id == buffer.id; });
        if (item == items.end()) item = items.insert(items.end(), {.buffer = buffer});
        item->lives.emplace_back(pass, buffer.lifetime);
      }
    }
    for (Item& item : items) {
      item.offset = item.buffer.fixed_offset.value_or(0);
      (item.buffer.fixed_offset ? placed_ : open_).push_back(item);
    }
  }

  void Try() {
    Bytes height = 0;
    for (const Item& each : placed_) height = std::max(height, each.offset + each.buffer.size);
    if (height >= best_) return;
    if (open_.empty()) {
      best_ = height;
      return;
    }
    for (std::size_t i = 0; i < open_.size(); ++i) {
      const Item next = open_[i];
      open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(i));
      const Bytes offset = LowestPlace(next);
      placed_.push_back(next);
      placed_.back().offset = offset;
      Try();
      placed_.pop_back();
      open_.insert(open_.begin() + static_cast<std::ptrdiff_t>(i), next);
    }
  }

  Bytes LowestPlace(const Item& item) const {
    Bytes offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (const Item& other : placed_) {
        const Bytes end = other.offset + other.buffer.size;
        if (!other.Meets(item) || offset >= end || other.offset >= offset + item.buffer.size) continue;
        offset = AlignUp(end, item.buffer.alignment);
        moved = true;
      }
    }
    return offset;
  }

  std::vector<Item> placed_;
  std::vector<Item> open_;
  Bytes best_ = std::numeric_limits<Bytes>::max();
};

}  // namespace livepool::testing
