#include "livepool/graph/saved_plan.h"

#include <algorithm>
#include <limits>

#include "livepool/base/error.h"
#include "livepool/graph/packing.h"
#include "livepool/plan/planner.h"
#include "livepool/plan/validate.h"

namespace livepool {
namespace {

constexpr std::int32_t kMostOps = 1 << 24;  // a table has an entry for each

// `allocations` must be as a recorder leaves them: in the order of birth, op by op.
void CheckRun(const Trace& run, const std::string& name) {
  constexpr Bytes kMost = std::numeric_limits<Bytes>::max() / 4;  // for all of them together, and for each time
  OpIndex op = 0;
  Time born = -1;
  Bytes sum = 0;
  for (std::size_t i = 0; i < run.allocations.size(); ++i) {
    const TraceAllocation& each = run.allocations[i];
    const auto fail = [&](const std::string& what) {
      throw InvalidInput("allocation " + std::to_string(i) + " of the " + name + " " + what);
    };
    if (each.op < -1 || each.op >= run.ops)
      fail("is in op " + std::to_string(each.op) + " of " + std::to_string(run.ops));
    if (each.op >= 0 && each.op < op) fail("is in an earlier op than the one before it");
    op = std::max(op, each.op);
    if (each.size <= 0 || each.size > kMost - sum) fail("has " + std::to_string(each.size) + " bytes");
    sum += each.size;
    if (each.birth <= born || each.birth > kMost) fail("is not born after the one before it");
    born = each.birth;
    if (each.death != TraceAllocation::kNeverFreed && (each.death <= each.birth || each.death > kMost))
      fail("dies before it is born");
  }
}

}  // namespace

Trace AllocationsOf(const Trace& run) {
  Trace saved{.allocations = run.allocations, .ops = run.ops};
  for (TraceAllocation& each : saved.allocations) {
    if (each.op < 0 || !each.same_stream) each.death = TraceAllocation::kNeverFreed;
    each.same_stream = true;
  }
  return saved;
}

SlotTable TableOf(const Trace& run, Bytes alignment) {
  std::vector<BufferLifetime> lifetimes;
  lifetimes.reserve(run.allocations.size());
  for (std::size_t i = 0; i < run.allocations.size(); ++i) {
    const TraceAllocation& each = run.allocations[i];
    lifetimes.push_back({.allocation = static_cast<AllocationIndex>(i),
                         .lifetime = {.birth = each.birth, .death = each.death},
                         .upstream = each.death == TraceAllocation::kNeverFreed});
  }
  const Packing packing = MakePacking(lifetimes, {}, run, alignment);
  const Plan plan = MakePlan(packing.problem);
  CheckPlan(packing.problem, plan);
  return MakeSlotTable(packing, plan, {}, run, alignment);
}

std::string DifferenceOfOps(const std::vector<std::string>& saved, const std::vector<std::string>& now) {
  const auto [a, b] = std::mismatch(saved.begin(), saved.end(), now.begin(), now.end());
  if (a == saved.end() && b == now.end()) return "";
  const std::string at = "op " + std::to_string(a - saved.begin());
  if (b == now.end()) return at + " was " + *a + ", and the pass ends before it now";
  if (a == saved.end()) return at + " is " + *b + ", and the pass had ended before it";
  return at + " was " + *a + " and is " + *b;
}

void CheckSavedPlan(const SavedPlan& saved) {
  if (saved.recorded.ops < 0 || static_cast<std::size_t>(saved.recorded.ops) != saved.ops.size()) {
    throw InvalidInput("the recorded run has not as many ops as there are names");
  }
  if (saved.calibration.ops < 0 || saved.calibration.ops > kMostOps)
    throw InvalidInput("the calibration has " + std::to_string(saved.calibration.ops) + " ops");
  CheckRun(saved.recorded, "recorded run");
  CheckRun(saved.calibration, "calibration");
  CheckPlan(saved.problem, saved.plan);
}

}  // namespace livepool
