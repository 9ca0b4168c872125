// Conflicts that are worth remembering (search_conflict.h).
//
// A conflict holds wherever its buffers have as little room above them as where it was learned, whatever else is
// there, and whatever the capacity: so it is kept as the room of each buffer,
//     room(i) = capacity - least(i),
// and a state fails if each buffer of the conflict is unplaced and has no more room than that. What was learned in one
// run cuts branches of all later ones, also those for a lower height. Few are kept, those that were met most lately:
// each is compared with every state.
//
// Source: learnt clauses of SAT solvers (Marques-Silva and Sakallah, "GRASP", 1996); Corbato's clock, 1968, decides
// which are given up.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "search_conflict.h"
#include "search_state.h"

namespace livepool {

template <typename Unit>
class Nogoods {
 public:
  explicit Nogoods(std::size_t items) : items_(items), room_(items), kept_(kMost * items, Unit{-1}), met_(kMost) {}

  // A conflict of a state of that capacity.
  void Learn(const Conflict<Unit>& conflict, Unit capacity) {
    for (; met_[hand_]; hand_ = (hand_ + 1) % kMost) met_[hand_] = false;
    for (std::size_t i = 0; i < items_; ++i) {
      const Unit least = conflict.least()[i];
      kept_[hand_ * items_ + i] = least == Conflict<Unit>::kAbsent ? kAny : static_cast<Unit>(capacity - least);
    }
    met_[hand_] = true;
    hand_ = (hand_ + 1) % kMost;
  }

  // Whether a conflict that is kept is one of `state`; if so it is written to `conflict`.
  bool Meets(const SearchState<Unit>& state, Conflict<Unit>& conflict) {
    std::fill(room_.begin(), room_.end(), kPlaced);
    for (const OpenItem<Unit>& open : state.list()) room_[open.item] = static_cast<Unit>(state.capacity - open.offset);
    for (std::size_t k = 0; k < kMost; ++k) {
      const Unit* const kept = kept_.data() + k * items_;
      if (!Within(kept)) continue;
      met_[k] = true;
      for (std::size_t i = 0; i < items_; ++i) {
        conflict.least()[i] =
            kept[i] == kAny ? Conflict<Unit>::kAbsent : std::max(Unit{0}, static_cast<Unit>(state.capacity - kept[i]));
      }
      return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t kMost = 64;
  static constexpr Unit kAny = std::numeric_limits<Unit>::max();  // of a buffer that is no part of the conflict
  static constexpr Unit kPlaced = kAny - 1;                       // more room than any conflict allows

  // room_[i] <= kept[i] for all i: in strides, each of them without a branch.
  bool Within(const Unit* kept) const {
    constexpr std::size_t kStride = 32;
    for (std::size_t first = 0; first < items_; first += kStride) {
      const std::size_t last = std::min(items_, first + kStride);
      Unit over = 0;
      for (std::size_t i = first; i < last; ++i) over = static_cast<Unit>(over | (room_[i] > kept[i] ? 1 : 0));
      if (over != 0) return false;
    }
    return true;
  }

  std::size_t items_;
  std::vector<Unit> room_;  // of the state in question, by item
  std::vector<Unit> kept_;  // by conflict, by item; room -1 matches nothing
  std::vector<bool> met_;   // by conflict: since the hand was there last
  std::size_t hand_ = 0;
};

}  // namespace livepool
