// Parts of a search state that share no buffer have nothing to do with each other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bump_arena.h"
#include "search_problem.h"
#include "search_state.h"

namespace livepool {

// How many unplaced buffers cross each boundary between two sections.
class Crossings {
 public:
  // Everything is unplaced.
  explicit Crossings(const SearchProblem& problem) : crossing_(problem.sections + std::size_t{1}) {
    for (const SearchProblem::Item& item : problem.items) Unplaced(item);
  }

  void Placed(const SearchProblem::Item& item) { Add(item, -1); }
  void Unplaced(const SearchProblem::Item& item) { Add(item, 1); }

  // The least boundary in (begin, end] that nothing crosses. `end` must be one.
  std::uint32_t NextFree(std::uint32_t begin, std::uint32_t end) const {
    std::uint32_t boundary = begin + 1;
    while (boundary < end && crossing_[boundary] != 0) ++boundary;
    return boundary;
  }

 private:
  void Add(const SearchProblem::Item& item, std::int32_t change) {
    for (std::uint32_t b = item.begin + 1; b < item.end; ++b) crossing_[b] += change;
  }

  std::vector<std::int32_t> crossing_;  // boundary b is between sections b - 1 and b
};

// The parts that hold a buffer, with memory of `arena`; the smallest first: it may fail soon.
template <typename Unit>
std::span<const SearchState<Unit>> SplitIntoParts(const SearchProblem& problem, const SearchState<Unit>& state,
                                                  const Crossings& crossings, BumpArena& arena) {
  auto* const parts = arena.Take<SearchState<Unit>>(state.end - state.begin);
  std::size_t part_count = 0;
  auto* const lists = arena.Take<OpenItem<Unit>>(state.count);
  std::size_t used = 0;
  for (std::uint32_t begin = state.begin; begin < state.end;) {
    const std::uint32_t end = crossings.NextFree(begin, state.end);
    SearchState<Unit> part{begin, end, state.capacity, lists + used, 0};
    for (const OpenItem<Unit>& open : state.list()) {
      if (problem.items[open.item].Overlaps(begin, end)) part.open[part.count++] = open;
    }
    used += part.count;
    if (part.count > 0) parts[part_count++] = part;
    begin = end;
  }
  std::stable_sort(parts, parts + part_count, [](const auto& a, const auto& b) { return a.count < b.count; });
  return {parts, part_count};
}

}  // namespace livepool
