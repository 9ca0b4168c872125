#include "livepool/eager/unit.h"

#include <algorithm>

#include "livepool/plan/planner.h"
#include "livepool/plan/validate.h"

namespace livepool {

std::shared_ptr<Unit> Unit::Make(const Kind& kind, Bytes alignment, const std::function<bool()>& stop) {
  const Problem problem = kind.MakeProblem(alignment);
  if (problem.buffers.empty()) return nullptr;
  const Plan plan = MakePlan(problem, {}, [&](const Plan&) { return !stop || !stop(); });
  if (stop && stop()) return nullptr;
  CheckPlan(problem, plan);

  SlotTable table;  // the pass is one op
  table.height = plan.height;
  table.allocations.reserve(kind.keys().size());
  for (const Key& key : kind.keys()) table.allocations.push_back({.size = key.size});
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    table.allocations[static_cast<std::size_t>(buffer.id)].range = static_cast<std::int32_t>(i);
    table.ranges.push_back({.offset = plan.offsets[i], .size = buffer.size});
  }
  table.first_of_op.push_back(static_cast<std::uint32_t>(table.allocations.size()));
  table.Check();
  return std::shared_ptr<Unit>(new Unit(kind.keys(), kind.hash(), std::move(table), plan.lower_bound));
}

std::shared_ptr<Unit> Unit::WithoutEscapes(const Kind& kind) const {
  SlotTable table = bindings_.table();
  for (std::size_t i = 0; i < table.allocations.size(); ++i) {
    if (kind.escaping(static_cast<Position>(i))) table.allocations[i].range = PlannedAllocation::kUpstream;
  }
  std::shared_ptr<Unit> unit(new Unit(keys_, kind_hash_, std::move(table), lower_bound_));
  return unit->planned() == 0 ? nullptr : unit;
}

Unit::Unit(std::vector<Key> keys, std::uint64_t kind_hash, SlotTable table, Bytes lower_bound)
    : keys_(std::move(keys)),
      kind_hash_(kind_hash),
      bindings_(std::move(table)),
      lower_bound_(lower_bound),
      planned_(static_cast<std::uint32_t>(
          std::count_if(bindings_.table().allocations.begin(), bindings_.table().allocations.end(),
                        [](const PlannedAllocation& each) { return each.range != PlannedAllocation::kUpstream; }))) {}

std::vector<Position> Unit::LivePositions(PlannedArena& arena, const std::unordered_set<const Slot*>& served) {
  const BoundTable& table = BoundTo(arena);
  std::vector<Position> live;
  for (std::size_t i = 0; i < table.entries.size(); ++i) {
    const Slot* slot = table.entries[i].slot;
    if (slot != nullptr && slot->live > 0 && served.contains(slot)) live.push_back(static_cast<Position>(i));
  }
  return live;
}

}  // namespace livepool
