#include "livepool/graph/served_plan.h"

#include <utility>

#include "livepool/graph/packing.h"

namespace livepool {

ServedPlan::ServedPlan(Plan plan, SlotTable table) : plan_(std::move(plan)), bindings_(std::move(table)) {
  bindings_.table().Check();
}

PlanInService::PlanInService(Problem problem, Plan plan, SlotTable table,
                             const std::optional<PlannerOptions>& background) {
  const Bytes height = plan.height;
  const bool search = background && !plan.ProvedOptimal();
  current_ = std::make_shared<ServedPlan>(std::move(plan), std::move(table));
  if (search) search_ = std::make_unique<BackgroundPlanner>(std::move(problem), height, *background);
}

std::shared_ptr<ServedPlan> PlanInService::ForNextPass(ArenaPool& pool) {
  std::shared_ptr<ServedPlan> next;
  {
    const std::lock_guard lock(mutex_);
    if (search_ == nullptr || !search_->Done()) return current_;
    const std::unique_ptr<BackgroundPlanner> search = std::move(search_);
    std::optional<Plan> better = search->Take();
    if (!better) return current_;
    SlotTable table = MovedTo(current_->table(), *better);
    next = std::make_shared<ServedPlan>(*std::move(better), std::move(table));
    current_ = next;
  }
  pool.Trim();
  return next;
}

std::shared_ptr<const ServedPlan> PlanInService::Current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

bool PlanInService::Searching() const {
  const std::lock_guard lock(mutex_);
  return search_ != nullptr && !search_->Done();
}

}  // namespace livepool
