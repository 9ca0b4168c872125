#include "livepool/graph/in_place.h"

#include <algorithm>
#include <optional>

namespace livepool {
namespace {

bool CoversItsStorage(const OpGraph& graph, const Value& value) {
  return value.storage_offset == 0 && value.NonOverlappingAndDense() &&
         value.DenseBytes() == graph.storage(value.storage).size;
}

// For each storage how many values are alive in the last op that uses it.
std::vector<int> ValuesAliveAtTheEnd(const OpGraph& graph, const std::vector<OpIndex>& last_use) {
  const std::vector<OpIndex> last_use_of_values = graph.LastUseOfValues();
  std::vector<int> alive(graph.storages.size(), 0);
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const auto storage = static_cast<std::size_t>(graph.values[i].storage);
    if (last_use_of_values[i] == last_use[storage]) ++alive[storage];
  }
  return alive;
}

// For each op the time at which the next one begins: what dies in it is gone by then.
std::vector<Time> BeginOfNextOp(const OpGraph& graph, const Trace& replay) {
  std::vector<Time> next(graph.ops.size(), static_cast<Time>(replay.events.size()));
  for (std::size_t time = 0; time < replay.events.size(); ++time) {
    const TraceEvent& event = replay.events[time];
    if (event.kind != TraceEvent::Kind::kOpBegin || event.index == 0) continue;
    next[static_cast<std::size_t>(event.index) - 1] = static_cast<Time>(time);
  }
  return next;
}

}  // namespace

std::vector<InPlacePair> FindInPlacePairs(const OpGraph& graph, const std::vector<BufferLifetime>& lifetimes,
                                          const Trace& replay) {
  const std::vector<OpIndex> last_use = graph.LastUseOfStorages();
  const std::vector<int> alive_at_end = ValuesAliveAtTheEnd(graph, last_use);
  const std::vector<Time> begin_of_next = BeginOfNextOp(graph, replay);
  // The planned buffer of each storage; none if it has several (resize_) or goes upstream.
  std::vector<std::optional<AllocationIndex>> buffer_of(graph.storages.size());
  std::vector<int> buffers(graph.storages.size(), 0);
  for (const BufferLifetime& each : lifetimes) {
    if (each.storage < 0) continue;
    ++buffers[static_cast<std::size_t>(each.storage)];
    if (!each.upstream) buffer_of[static_cast<std::size_t>(each.storage)] = each.allocation;
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i] != 1) buffer_of[i].reset();
  }

  std::vector<InPlacePair> pairs;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    const auto at = static_cast<OpIndex>(i);
    if (!op.pointwise || op.outputs.size() != 1 || op.name.find("_foreach_") != std::string::npos) continue;
    const Value& output = graph.value(op.outputs[0]);
    const std::optional<AllocationIndex> successor = buffer_of[static_cast<std::size_t>(output.storage)];
    if (!successor || replay.allocations[static_cast<std::size_t>(*successor)].op != at) continue;
    if (!CoversItsStorage(graph, output)) continue;
    for (const ValueId input : op.inputs) {
      const Value& value = graph.value(input);
      const auto storage = static_cast<std::size_t>(value.storage);
      const std::optional<AllocationIndex> predecessor = buffer_of[storage];
      if (!predecessor) continue;
      const TraceAllocation& before = replay.allocations[static_cast<std::size_t>(*predecessor)];
      if (before.op >= at || last_use[storage] != at) continue;
      if (lifetimes[static_cast<std::size_t>(*predecessor)].lifetime.death > begin_of_next[i]) continue;
      if (!value.SameGeometry(output) || !CoversItsStorage(graph, value)) continue;
      if (before.size != replay.allocations[static_cast<std::size_t>(*successor)].size) continue;
      if (alive_at_end[storage] != 1) continue;
      if (std::find(op.writes.begin(), op.writes.end(), input) != op.writes.end()) continue;
      // No other pair has this predecessor, as it dies in this op, nor this successor, as it is born in it.
      pairs.push_back({.op = at, .input = input, .predecessor = *predecessor, .successor = *successor});
      break;
    }
  }
  return pairs;
}

}  // namespace livepool
