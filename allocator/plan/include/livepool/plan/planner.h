// Makes plans.
#pragma once

#include "livepool/plan/plan.h"
#include "livepool/plan/problem.h"

namespace livepool {

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
