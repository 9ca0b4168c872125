#include "livepool/graph/lifetimes.h"

#include <algorithm>

namespace livepool {

std::vector<BufferLifetime> ComputeLifetimes(const OpGraph& graph, const Trace& replay,
                                             const std::vector<StorageId>& storage_of) {
  std::vector<Time> end_of_op(graph.ops.size() + 1, 0);
  for (std::size_t time = 0; time < replay.events.size(); ++time) {
    const TraceEvent& event = replay.events[time];
    if (event.kind != TraceEvent::Kind::kOpEnd) continue;
    end_of_op[static_cast<std::size_t>(event.index)] = static_cast<Time>(time);
  }
  const auto ops = static_cast<OpIndex>(graph.ops.size());
  const std::vector<OpIndex> last_use = graph.LastUseOfStorages();

  std::vector<BufferLifetime> lifetimes;
  lifetimes.reserve(replay.allocations.size());
  for (std::size_t i = 0; i < replay.allocations.size(); ++i) {
    const TraceAllocation& allocation = replay.allocations[i];
    BufferLifetime& buffer = lifetimes.emplace_back();
    buffer.allocation = static_cast<AllocationIndex>(i);
    buffer.storage = storage_of[i];
    buffer.lifetime = {.birth = allocation.birth, .death = allocation.death};
    buffer.upstream = allocation.op < 0 || !allocation.same_stream || allocation.death == TraceAllocation::kNeverFreed;
    if (buffer.storage >= 0) {
      const OpIndex last = last_use[static_cast<std::size_t>(buffer.storage)];
      if (last >= ops) {
        buffer.upstream = !graph.outputs_in_arena || allocation.op < 0 || !allocation.same_stream;
        if (!buffer.upstream) buffer.lifetime.death = static_cast<Time>(replay.events.size());
      } else if (last >= 0) {
        // The end of the op still belongs to the life. What was seen to live longer, lives longer.
        buffer.lifetime.death = std::max(buffer.lifetime.death, end_of_op[static_cast<std::size_t>(last)] + 1);
      }
    }
  }
  return lifetimes;
}

}  // namespace livepool
