// The plan that passes are served from, and how a better one takes its place.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "livepool/plan/background_planner.h"
#include "livepool/plan/plan.h"
#include "livepool/pool/arena_bindings.h"
#include "livepool/pool/arena_pool.h"

namespace livepool {

// A plan with its table, bound to each arena that it has met. Immutable but for the bindings; any thread.
class ServedPlan {
 public:
  // Throws InvalidPlan if the table breaks a rule (SlotTable::Check).
  ServedPlan(Plan plan, SlotTable table);

  const Plan& plan() const { return plan_; }
  const SlotTable& table() const { return bindings_.table(); }
  const BoundTable& BoundTo(PlannedArena& arena) { return bindings_.On(arena); }

 private:
  const Plan plan_;
  ArenaBindings bindings_;
};

// Note [Swapping plans]
// A pass takes the plan in service, as a shared pointer, before it borrows an arena, and keeps it until it has given
// the arena back. A better plan that the background search has found goes into service when the next pass takes its
// plan: no pass ever changes plan. The old plan is unbound when the last pass that runs on it ends. Its slots that are
// still live keep their table until they are freed (PlannedArena::Unbind), and no pass of the new plan starts on their
// bytes (ArenaPool::Borrow).
class PlanInService {
 public:
  // `background`: how a better plan for `problem` is looked for; nothing: it is not. No search, and no thread, if
  // `plan` is proved optimal.
  PlanInService(Problem problem, Plan plan, SlotTable table, const std::optional<PlannerOptions>& background);

  // The plan for the next pass. Any thread. When a better plan goes into service, the memory of idle arenas of `pool`
  // is given back, or the arena would stay as large as the old plan. Throws InvalidPlan.
  std::shared_ptr<ServedPlan> ForNextPass(ArenaPool& pool);

  // The plan in service.
  std::shared_ptr<const ServedPlan> Current() const;
  // A better plan is being looked for.
  bool Searching() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<ServedPlan> current_;
  std::unique_ptr<BackgroundPlanner> search_;  // gone once its result was taken
};

}  // namespace livepool
