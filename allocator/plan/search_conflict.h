// Why a state of the search has failed.
//
// A conflict names some buffers and a least offset for each, such that
//     no packing of these buffers alone, each at its least offset or higher, stays within the capacity.
// It is a conflict of a state if all of them are unplaced there, and none can lie lower there than the conflict says:
// then the state has no solution, whatever else is in it.
//
// Conflicts arise where the bound fails (all that is on one section), and are merged where all answers to a question
// have failed (Refutation). A conflict of a child that is one of its parent as well tells that the parent's question
// was beside the point: no other answer need be tried (backjumping). The least offsets are kept as low as the proof
// allows, so that this happens often.
//
// Source: Prosser, "Hybrid algorithms for the constraint satisfaction problem", 1993 (conflict-directed backjumping);
// Marques-Silva and Sakallah, "GRASP", 1996 (learning from conflicts). Lazy clause generation (Ohrimenko et al., 2009)
// lowers bounds in explanations in the same way.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bump_arena.h"
#include "search_branching.h"
#include "search_problem.h"
#include "search_state.h"

namespace livepool {

template <typename Unit>
class Conflict {
 public:
  static constexpr Unit kAbsent = -1;

  explicit Conflict(std::size_t items) : least_(items, kAbsent) {}

  // By item: its least offset, or kAbsent.
  std::span<Unit> least() { return least_; }
  std::span<const Unit> least() const { return least_; }

  // One buffer ends above the capacity.
  void SetToItem(const SearchProblem& problem, const SearchState<Unit>& state, std::uint16_t item) {
    std::fill(least_.begin(), least_.end(), kAbsent);
    least_[item] = AtLeastZero(state.capacity - problem.items[item].size + 1);
  }

  // Those of the first `count` of the state's list that are on `section` do not fit above the least of their offsets.
  void SetToSection(const SearchProblem& problem, const SearchState<Unit>& state, std::uint32_t section,
                    std::size_t count) {
    std::fill(least_.begin(), least_.end(), kAbsent);
    std::int64_t sum = 0;
    for (const OpenItem<Unit>& open : state.list().first(count)) {
      if (problem.items[open.item].Covers(section)) sum += problem.items[open.item].size;
    }
    for (const OpenItem<Unit>& open : state.list().first(count)) {
      if (problem.items[open.item].Covers(section)) least_[open.item] = AtLeastZero(state.capacity - sum + 1);
    }
  }

  // For a buffer that overlaps all others, and whose size was taken off the capacity for that. In any packing it may
  // be moved to the top, and all above it down by its size; they come to lie where it was, or higher.
  void AddCeiling(std::uint16_t item) {
    least_[item] = std::max(Unit{0}, *std::max_element(least_.begin(), least_.end()));
  }

  // Whether this, a conflict of a child of `state`, is one of `state`.
  bool HoldsIn(const SearchState<Unit>& state) const {
    return std::all_of(state.open, state.open + state.count,
                       [&](const OpenItem<Unit>& open) { return least_[open.item] <= open.offset; });
  }

 private:
  static Unit AtLeastZero(std::int64_t offset) { return static_cast<Unit>(std::max<std::int64_t>(offset, 0)); }

  std::vector<Unit> least_;
};

// The conflict of a state whose question has no answer left, from those of its children, none of which holds in the
// state itself. Let m be the question's level, s its section, and U the buffers of all of them.
template <typename Unit>
class Refutation {
 public:
  Refutation(const SearchProblem& problem, const SearchState<Unit>& state, const Question<Unit>& question,
             BumpArena& arena)
      : problem_(problem),
        state_(state),
        question_(question),
        merged_(arena.Take<Unit>(problem.items.size()), problem.items.size()) {
    std::fill(merged_.begin(), merged_.end(), Conflict<Unit>::kAbsent);
  }

  // `placed` at m leads to `conflict`. A buffer that it raised must lie above it: it does if it does not lie below.
  void AddPlaced(std::uint16_t placed, const Conflict<Unit>& conflict) {
    for (const OpenItem<Unit>& open : state_.list()) {
      const Unit least = conflict.least()[open.item];
      if (least == Conflict<Unit>::kAbsent) continue;
      Require(open.item, least <= open.offset ? least : AboveLevel(open.item));
    }
    Require(placed, question_.level);
  }

  // Nothing of U on s at m leads to `conflict`, in which the buffers on s lie at t or higher. They do in every settled
  // packing of U if no buffer of U is on s between m and t without resting on another one, and none that can be below
  // one of them ends lower than t. Writes the merged conflict to `conflict`.
  void AddWasteAndFinish(Conflict<Unit>& conflict) {
    Unit t = question_.level;
    for (const OpenItem<Unit>& open : state_.list()) {
      const Unit least = conflict.least()[open.item];
      if (least == Conflict<Unit>::kAbsent) continue;
      if (least > open.offset) t = std::max(t, least);
      Require(open.item, std::min(least, open.offset));
    }
    for (const OpenItem<Unit>& open : state_.list()) {
      if (merged_[open.item] == Conflict<Unit>::kAbsent) continue;
      const SearchProblem::Item& item = problem_.items[open.item];
      if (item.Covers(question_.section)) {
        Require(open.item, std::min(open.offset, t));
      } else if (item.Overlaps(question_.niche_begin, question_.niche_end)) {
        Require(open.item, static_cast<Unit>(t - item.size));
      }
    }
    std::copy(merged_.begin(), merged_.end(), conflict.least().begin());
  }

 private:
  void Require(std::uint16_t item, Unit least) { merged_[item] = std::max({merged_[item], least, Unit{0}}); }
  Unit AboveLevel(std::uint16_t item) const {
    return static_cast<Unit>(question_.level - problem_.items[item].size + 1);
  }

  const SearchProblem& problem_;
  const SearchState<Unit>& state_;
  const Question<Unit>& question_;
  std::span<Unit> merged_;  // as Conflict::least()
};

}  // namespace livepool
