// Makes plans.
#pragma once

#include "livepool/plan/plan.h"
#include "livepool/plan/problem.h"

namespace livepool {

// The ideas of the depth-first search (docs/planner.md). None of them changes which capacities can be packed; each
// makes the search faster.
struct SearchSwitches {
  bool bound = true;           // prune by what must still lie above each offset
  bool fewest_answers = true;  // ask the section with the fewest answers; else the lowest niche
  bool memo = true;            // remember states that have failed
  bool split = true;           // solve parts that share no buffer one by one
  bool ceiling = true;         // a buffer that overlaps all others goes to the top
  bool twins = true;           // of equal buffers only one is tried
  bool restarts = true;        // give up a run soon, and begin anew in another order
  bool weigh_failures = true;  // near the bound, ask first where the search has failed before

  friend bool operator==(const SearchSwitches&, const SearchSwitches&) = default;
};

// Each rule can be switched off; at least one must stay on that honours what the problem asks for.
struct PlannerOptions {
  // Buffers of lowest feasible offset first, in several orders. Skipped if a buffer has a fixed offset.
  bool skyline = true;
  // Each buffer into the smallest gap that fits, in several orders. The only rule for fixed offsets.
  bool offset_best_fit = true;
  // Greedy best fit of whole slots in birth order (livepool's first planner, the baseline in tables).
  // Skipped if a buffer has a fixed offset.
  bool whole_slots = true;

  friend bool operator==(const PlannerOptions&, const PlannerOptions&) = default;
};

// The best plan that the rules in `options` find; a pure function of its arguments, and independent of the
// order of problem.buffers: ids break every tie. Stops as soon as the lower bound is reached.
//
// Throws InvalidInput, naming the buffer, if no plan can exist or be computed:
//  - a buffer breaks a rule of problem.h, two share an id, or two fixed ones share bytes while both live;
//  - stacked on each other (with alignment) the buffers would end past 64 bits;
//  - no rule is on, or none of those that are honours fixed offsets where the problem has one.
[[nodiscard]] Plan MakePlan(const Problem& problem, const PlannerOptions& options = {});

}  // namespace livepool
