// The independent judge of plans. It shares no code with the planner.
#pragma once

#include <string>

#include "livepool/plan/plan.h"
#include "livepool/plan/problem.h"

namespace livepool {

// The rule that a plan breaks. They are checked in this order, and the first one broken is the verdict.
enum class PlanFault {
  kNone,
  kBadBuffer,      // the problem itself: size or alignment not positive, empty lifetime, duplicate id
  kMissingOffset,  // not exactly one offset for each buffer
  kNegative,       // an offset below 0, or offset + size beyond 64 bits
  kAlignment,      // an offset that is not a multiple of the buffer's alignment
  kMoved,          // a buffer with a fixed offset lies elsewhere
  kOverlap,        // two buffers share a byte while both are alive
  kShared,         // a buffer that several passes share lies elsewhere in one of them (shared_arena.h)
  kHeight,         // height is not max(offset + size)
  kLowerBound,     // lower_bound is not max over time of the live bytes
  kProvedBound,    // proved_bound is above the height: the plan itself refutes it
};

struct PlanVerdict {
  PlanFault fault = PlanFault::kNone;
  std::string message;  // names the rule and the buffers; empty if the plan is good

  bool ok() const { return fault == PlanFault::kNone; }
};

// Judges `plan` for `problem` by a sweep over time; O(n log n). Never throws on bad plans.
[[nodiscard]] PlanVerdict Validate(const Problem& problem, const Plan& plan);

// Throws InvalidPlan with the verdict's message if the plan breaks a rule.
void CheckPlan(const Problem& problem, const Plan& plan);

}  // namespace livepool
