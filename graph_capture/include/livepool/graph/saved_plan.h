// What a capture has learnt of a pass's memory: enough to serve the capture of the same pass in another process.
#pragma once

#include <string>
#include <vector>

#include "livepool/graph/trace.h"
#include "livepool/plan/plan.h"
#include "livepool/plan/problem.h"
#include "livepool/pool/slot_table.h"

namespace livepool {

// Note [Saved plans]
// The program is not saved. The module runs under the recorder in each process, so that what is replayed is always what
// it does now, and nothing that a file says can change a result. What is saved makes these runs small: the allocations
// of the recorded run, and those of the calibration, by (op, n-th allocation inside the op), are packed and served from
// slots as any pass is, where the live list has the last word. At the end the packing problem of the replay is made
// anew; if it is the saved one, its plan is the saved one. Otherwise it is planned, as without a file.
struct SavedPlan {
  // The ops of the recorded run, which the recorder compares one by one: "aten::addmm -> Float[2, 8]".
  std::vector<std::string> ops;
  // Of the two runs the allocations alone, no events. Times are positions in the events that there were.
  Trace recorded;
  Trace calibration;
  // Of the replay.
  Problem problem;
  Plan plan;
  friend bool operator==(const SavedPlan&, const SavedPlan&) = default;
};

// `run` as it is saved: without its events, and with what is not served (on another stream, or between ops) never
// freed.
Trace AllocationsOf(const Trace& run);

// The table that serves a run with the allocations of `run`, each from its birth to its death. What was not freed in
// the run goes upstream. Throws InvalidInput if the sizes cannot be added up.
SlotTable TableOf(const Trace& run, Bytes alignment);

// In what `now` differs from `saved`, for people; empty if in nothing.
std::string DifferenceOfOps(const std::vector<std::string>& saved, const std::vector<std::string>& now);

// Throws InvalidInput, saying which, if a number of `saved` is out of range: whatever its origin, it can be served
// after that. Throws InvalidPlan if the plan breaks a rule.
void CheckSavedPlan(const SavedPlan& saved);

}  // namespace livepool
