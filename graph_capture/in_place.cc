#include "livepool/graph/in_place.h"

#include <algorithm>
#include <optional>

namespace livepool {
namespace {

bool CoversItsStorage(const OpGraph& graph, const Value& value) {
  return value.storage_offset == 0 && value.NonOverlappingAndDense() &&
         value.DenseBytes() == graph.storage(value.storage).size;
}

// Clauses 3 to 5 of the rule for `input`, given an output that covers its storage.
bool MayOverwrite(const OpGraph& graph, const Op& op, ValueId input, const Value& output,
                  const std::vector<OpIndex>& last_use_of_values, OpIndex at) {
  const Value& value = graph.value(input);
  if (!value.SameGeometry(output) || !CoversItsStorage(graph, value)) return false;
  if (std::find(op.writes.begin(), op.writes.end(), input) != op.writes.end()) return false;
  for (const ValueId other : op.inputs) {
    if (graph.value(other).storage == value.storage && !graph.value(other).SameGeometry(value)) return false;
  }
  for (std::size_t other = 0; other < graph.values.size(); ++other) {
    const bool alias = graph.values[other].storage == value.storage && static_cast<ValueId>(other) != input;
    if (alias && last_use_of_values[other] >= at) return false;
  }
  return true;
}

}  // namespace

std::vector<InPlacePair> FindInPlacePairs(const OpGraph& graph, const std::vector<BufferLifetime>& lifetimes,
                                          const Trace& replay) {
  const std::vector<OpIndex> last_use = graph.LastUseOfStorages();
  const std::vector<OpIndex> last_use_of_values = graph.LastUseOfValues();
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
  std::vector<bool> taken(replay.allocations.size(), false);  // as predecessor
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    const auto at = static_cast<OpIndex>(i);
    if (!op.pointwise || op.outputs.size() != 1 || op.name.find("_foreach_") != std::string::npos) continue;
    const Value& output = graph.value(op.outputs[0]);
    const std::optional<AllocationIndex> successor = buffer_of[static_cast<std::size_t>(output.storage)];
    if (!successor || replay.allocations[static_cast<std::size_t>(*successor)].op != at) continue;
    if (!CoversItsStorage(graph, output)) continue;
    for (const ValueId input : op.inputs) {
      const StorageId storage = graph.value(input).storage;
      const std::optional<AllocationIndex> predecessor = buffer_of[static_cast<std::size_t>(storage)];
      if (!predecessor || taken[static_cast<std::size_t>(*predecessor)] || *predecessor == *successor) continue;
      if (last_use[static_cast<std::size_t>(storage)] != at) continue;
      const TraceAllocation& before = replay.allocations[static_cast<std::size_t>(*predecessor)];
      if (before.op >= at || before.size != replay.allocations[static_cast<std::size_t>(*successor)].size) continue;
      if (!MayOverwrite(graph, op, input, output, last_use_of_values, at)) continue;
      taken[static_cast<std::size_t>(*predecessor)] = true;
      pairs.push_back({.op = at, .input = input, .predecessor = *predecessor, .successor = *successor});
      break;
    }
  }
  return pairs;
}

}  // namespace livepool
