#include "livepool/graph/packing.h"

#include <algorithm>

namespace livepool {

Packing MakePacking(const std::vector<BufferLifetime>& lifetimes, const std::vector<InPlacePair>& pairs,
                    const Trace& replay, Bytes alignment) {
  std::vector<AllocationIndex> predecessor(lifetimes.size(), -1);
  for (const InPlacePair& pair : pairs) predecessor[static_cast<std::size_t>(pair.successor)] = pair.predecessor;

  Packing packing;
  packing.buffer_of.assign(lifetimes.size(), -1);
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    if (lifetimes[i].upstream) continue;
    // A predecessor was allocated earlier, so it has its buffer already: the chain grows by one link.
    if (predecessor[i] >= 0) {
      const std::int32_t buffer = packing.buffer_of[static_cast<std::size_t>(predecessor[i])];
      packing.buffer_of[i] = buffer;
      Lifetime& chain = packing.problem.buffers[static_cast<std::size_t>(buffer)].lifetime;
      chain.death = std::max(chain.death, lifetimes[i].lifetime.death);
      continue;
    }
    packing.buffer_of[i] = static_cast<std::int32_t>(packing.problem.buffers.size());
    packing.problem.buffers.push_back({.id = static_cast<std::int64_t>(i),
                                       .lifetime = lifetimes[i].lifetime,
                                       .size = AlignUp(replay.allocations[i].size, alignment),
                                       .alignment = alignment});
  }
  return packing;
}

SlotTable MakeSlotTable(const Packing& packing, const Plan& plan, const std::vector<InPlacePair>& pairs,
                        const Trace& replay, Bytes alignment) {
  std::vector<bool> in_place(replay.allocations.size(), false);
  for (const InPlacePair& pair : pairs) in_place[static_cast<std::size_t>(pair.successor)] = true;

  SlotTable table;
  table.height = plan.height;
  for (std::size_t i = 0; i < plan.offsets.size(); ++i) {
    table.ranges.push_back({.offset = plan.offsets[i], .size = packing.problem.buffers[i].size});
  }
  for (std::size_t i = 0; i < replay.allocations.size(); ++i) {
    const TraceAllocation& allocation = replay.allocations[i];
    if (allocation.op < 0) continue;
    while (table.first_of_op.size() < static_cast<std::size_t>(allocation.op) + 1) {
      table.first_of_op.push_back(static_cast<std::uint32_t>(table.allocations.size()));
    }
    table.allocations.push_back(
        {.size = AlignUp(allocation.size, alignment), .range = packing.buffer_of[i], .in_place = in_place[i]});
  }
  table.first_of_op.resize(static_cast<std::size_t>(replay.ops) + 1,
                           static_cast<std::uint32_t>(table.allocations.size()));
  return table;
}

SlotTable MovedTo(SlotTable table, const Plan& plan) {
  table.height = plan.height;
  for (std::size_t i = 0; i < table.ranges.size(); ++i) table.ranges[i].offset = plan.offsets.at(i);
  return table;
}

}  // namespace livepool
