// Which capacities the depth-first search is asked for, and for how long.
//
// Anytime: the best plan so far is always there, and each answer narrows what is open,
//     proved bound <= height of the best plan that exists <= height of the best plan found.
// The goal (the lower bound, or the capacity that is good enough) comes first, alone for 20,000 nodes: at a tight
// capacity the bounds prune most. From then on half of the nodes go to the goal, and half to the heights between it and
// the best plan, run by run. These heights are spread evenly by multiples of the golden ratio, so that no run depends
// on a guess at what is within reach; what is learned at one height holds at lower ones (nogoods.h). An exhausted
// search raises the proved bound.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "livepool/plan/planner.h"
#include "livepool/plan/problem.h"
#include "rule.h"
#include "sections.h"

namespace livepool {

struct SearchTask {
  Bytes best_height = 0;  // of the plan that is to be beaten
  Bytes goal = 0;         // a plan of this height is good enough
  std::int64_t max_nodes = 0;
  std::uint64_t seed = 0;
  SearchSwitches switches;
  std::function<void(const Offsets&)> improved = {};  // called with each better plan
  std::function<bool()> stop = {};                    // asked every few hundred nodes
};

struct SearchResult {
  std::optional<Offsets> offsets;  // below best_height; nothing if the search found none
  Bytes proved_bound = 0;          // no plan is lower; 0 if nothing was proved
  std::int64_t nodes = 0;
};

// Does nothing for problems that the search does not handle (search_problem.h).
[[nodiscard]] SearchResult SearchBelow(const Problem& problem, const Sections& sections, const SearchTask& task);

}  // namespace livepool
