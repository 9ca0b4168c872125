// A state of the depth-first search: what is unplaced, and how low it can lie.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bump_arena.h"
#include "search_problem.h"

namespace livepool {

// An unplaced buffer.
template <typename Unit>
struct OpenItem {
  Unit offset = 0;         // it cannot lie lower
  std::uint16_t item = 0;  // index in SearchProblem::items
};

// Sections [begin, end), whose sides no unplaced buffer crosses, and the unplaced buffers on them. What was placed
// shows in the least offsets alone.
template <typename Unit>
struct SearchState {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  Unit capacity = 0;
  OpenItem<Unit>* open = nullptr;  // offsets descend
  std::size_t count = 0;

  std::span<const OpenItem<Unit>> list() const { return {open, count}; }
};

// All of `problem` unplaced, with memory of `arena`.
template <typename Unit>
SearchState<Unit> RootState(const SearchProblem& problem, Unit capacity, BumpArena& arena) {
  SearchState<Unit> root{0, problem.sections, capacity, arena.Take<OpenItem<Unit>>(problem.items.size()), 0};
  for (; root.count < problem.items.size(); ++root.count) {
    root.open[root.count] = {0, static_cast<std::uint16_t>(root.count)};
  }
  return root;
}

// The state in which every buffer on sections [begin, end) lies at `level` at least; without the one at index
// `left_out` of the list (state.count: all stay). Those that are raised form one block of the list.
template <typename Unit>
SearchState<Unit> Lift(const SearchProblem& problem, const SearchState<Unit>& state, std::uint32_t begin,
                       std::uint32_t end, Unit level, std::size_t left_out, BumpArena& arena) {
  SearchState<Unit> next{state.begin, state.end, state.capacity, arena.Take<OpenItem<Unit>>(state.count), 0};
  const auto on_range = [&](std::size_t i) { return problem.items[state.open[i].item].Overlaps(begin, end); };
  std::size_t i = 0;
  for (; i < state.count && state.open[i].offset >= level; ++i) {
    if (i != left_out) next.open[next.count++] = state.open[i];
  }
  for (std::size_t j = i; j < state.count; ++j) {
    if (j != left_out && on_range(j)) next.open[next.count++] = {level, state.open[j].item};
  }
  for (std::size_t j = i; j < state.count; ++j) {
    if (j != left_out && !on_range(j)) next.open[next.count++] = state.open[j];
  }
  return next;
}

}  // namespace livepool
