#include "livepool/graph/memory_order.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "livepool/graph/dependencies.h"
#include "livepool/graph/lifetimes.h"
#include "livepool/graph/packing.h"
#include "livepool/plan/lower_bound.h"

namespace livepool {
namespace {

// For each op the storages that it uses, each once, and for each storage the ops.
struct StorageUses {
  std::vector<std::vector<StorageId>> of_op;
  std::vector<std::vector<OpIndex>> of_storage;

  explicit StorageUses(const OpGraph& graph) : of_op(graph.ops.size()), of_storage(graph.storages.size()) {
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
      for (const auto* ids : {&graph.ops[i].inputs, &graph.ops[i].outputs}) {
        for (const ValueId id : *ids) of_op[i].push_back(graph.value(id).storage);
      }
      std::sort(of_op[i].begin(), of_op[i].end());
      of_op[i].erase(std::unique(of_op[i].begin(), of_op[i].end()), of_op[i].end());
      for (const StorageId storage : of_op[i])
        of_storage[static_cast<std::size_t>(storage)].push_back(static_cast<OpIndex>(i));
    }
  }
};

// Bytes of each storage that the plan is about; 0 for all others.
std::vector<Bytes> PlannedBytes(const PassMemory& pass, Bytes alignment) {
  std::vector<Bytes> bytes(pass.graph.storages.size(), 0);
  for (const BufferLifetime& buffer : ComputeLifetimes(pass.graph, pass.trace, pass.storage_of)) {
    if (buffer.storage < 0 || buffer.upstream) continue;
    bytes[static_cast<std::size_t>(buffer.storage)] +=
        AlignUp(pass.trace.allocations[static_cast<std::size_t>(buffer.allocation)].size, alignment);
  }
  return bytes;
}

// A list schedule in one direction. Seen backwards, a storage is "born" at its last use and "dies" at its first, and
// successors are what must be done before; so one code does both.
class ListSchedule {
 public:
  ListSchedule(const PassMemory& pass, const Dependencies& dependencies, const StorageUses& uses,
               const std::vector<Bytes>& bytes, std::size_t fixed, bool backwards)
      : uses_(uses),
        bytes_(bytes),
        fixed_(fixed),
        backwards_(backwards),
        count_(pass.graph.ops.size()),
        next_(count_),
        waits_(count_, 0),
        alive_(bytes.size(), false),
        left_(bytes.size(), 0),
        returned_(bytes.size(), false) {
    for (std::size_t i = 0; i < count_; ++i) {
      for (const OpIndex after : dependencies.successors[i]) {
        const auto to = static_cast<std::size_t>(after);
        next_[backwards ? to : i].push_back(static_cast<OpIndex>(backwards ? i : to));
        ++waits_[backwards ? i : to];
      }
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) left_[i] = static_cast<std::int32_t>(uses.of_storage[i].size());
    for (const ValueId id : pass.graph.outputs)
      returned_[static_cast<std::size_t>(pass.graph.value(id).storage)] = true;
  }

  OpOrder Run() {
    OpOrder order;
    order.reserve(count_);
    std::vector<bool> done(count_, false);
    const auto run = [&](OpIndex op) {
      done[static_cast<std::size_t>(op)] = true;
      order.push_back(op);
      for (const OpIndex changed : Take(op)) {
        if (!done[static_cast<std::size_t>(changed)] && waits_[static_cast<std::size_t>(changed)] == 0) Push(changed);
      }
    };
    if (!backwards_) {
      for (std::size_t i = 0; i < fixed_; ++i) run(static_cast<OpIndex>(i));
    }
    for (std::size_t i = fixed_; i < count_; ++i) {
      if (waits_[i] == 0) Push(static_cast<OpIndex>(i));
    }
    while (!ready_.empty()) {
      const Entry entry = ready_.top();
      ready_.pop();
      const OpIndex op = entry.op;
      if (done[static_cast<std::size_t>(op)] || entry.adds != Adds(op)) continue;  // pushed again meanwhile
      run(op);
    }
    if (backwards_) {
      for (std::size_t i = fixed_; i-- > 0;) run(static_cast<OpIndex>(i));
      std::reverse(order.begin(), order.end());
    }
    return order;
  }

 private:
  struct Entry {
    Bytes adds;
    OpIndex rank;  // ties: in the recorded order
    OpIndex op;
    bool operator<(const Entry& other) const { return std::pair(adds, rank) > std::pair(other.adds, other.rank); }
  };

  void Push(OpIndex op) {
    if (static_cast<std::size_t>(op) < fixed_) return;
    ready_.push({Adds(op), backwards_ ? -op : op, op});
  }

  // What is alive more after `op` than before it.
  Bytes Adds(OpIndex op) const {
    Bytes adds = 0;
    for (const StorageId storage : uses_.of_op[static_cast<std::size_t>(op)]) {
      const auto i = static_cast<std::size_t>(storage);
      if (!alive_[i]) adds += bytes_[i];
      if (left_[i] == 1 && !(returned_[i] && !backwards_)) adds -= bytes_[i];
    }
    return adds;
  }

  // Runs `op`; returns the ops whose readiness or Adds may have changed.
  std::vector<OpIndex> Take(OpIndex op) {
    std::vector<OpIndex> changed;
    for (const StorageId storage : uses_.of_op[static_cast<std::size_t>(op)]) {
      const auto i = static_cast<std::size_t>(storage);
      const bool born = !alive_[i];
      alive_[i] = true;
      --left_[i];
      if (bytes_[i] == 0) continue;
      // At its birth all its users change; at one use left, the last user does. Each storage has both once.
      if (born || left_[i] == 1) changed.insert(changed.end(), uses_.of_storage[i].begin(), uses_.of_storage[i].end());
    }
    for (const OpIndex after : next_[static_cast<std::size_t>(op)]) {
      if (--waits_[static_cast<std::size_t>(after)] == 0) changed.push_back(after);
    }
    return changed;
  }

  const StorageUses& uses_;
  const std::vector<Bytes>& bytes_;
  const std::size_t fixed_;
  const bool backwards_;
  const std::size_t count_;
  std::vector<std::vector<OpIndex>> next_;
  std::vector<std::int32_t> waits_;
  std::vector<bool> alive_;
  std::vector<std::int32_t> left_;  // uses that have not run
  std::vector<bool> returned_;      // backwards it is alive from the start, forwards to the end
  std::priority_queue<Entry> ready_;
};

}  // namespace

std::optional<PassMemory> InOrder(const PassMemory& pass, const OpOrder& order) {
  const std::size_t count = order.size();
  // The events inside each op; what is freed elsewhere than in its op must be a tensor's, freed at its last use.
  std::vector<std::vector<TraceEvent>> inside(count);
  const std::vector<OpIndex> old_last_use = pass.graph.LastUseOfStorages();
  OpIndex begun = -1;
  OpIndex open = -1;
  for (const TraceEvent& event : pass.trace.events) {
    if (event.kind == TraceEvent::Kind::kOpBegin) {
      begun = open = event.index;
    } else if (event.kind == TraceEvent::Kind::kOpEnd) {
      open = -1;
    } else {
      const auto allocation = static_cast<std::size_t>(event.index);
      const bool own = open >= 0 && pass.trace.allocations[allocation].op == open;
      if (own)
        inside[static_cast<std::size_t>(open)].push_back(event);
      else if (pass.storage_of[allocation] < 0)
        return std::nullopt;
      else if (begun > old_last_use[static_cast<std::size_t>(pass.storage_of[allocation])])
        return std::nullopt;
    }
  }

  PassMemory moved{.graph = pass.graph};
  moved.graph.ops.clear();
  for (const OpIndex op : order) moved.graph.ops.push_back(pass.graph.ops[static_cast<std::size_t>(op)]);
  std::vector<std::vector<StorageId>> dies_after(count);
  const std::vector<OpIndex> last_use = moved.graph.LastUseOfStorages();
  for (std::size_t i = 0; i < last_use.size(); ++i) {
    if (last_use[i] >= 0 && static_cast<std::size_t>(last_use[i]) < count) {
      dies_after[static_cast<std::size_t>(last_use[i])].push_back(static_cast<StorageId>(i));
    }
  }

  Trace& trace = moved.trace;
  std::vector<AllocationIndex> new_index(pass.trace.allocations.size(), -1);
  std::vector<std::vector<AllocationIndex>> alive_in(pass.graph.storages.size());
  const auto push = [&](TraceEvent::Kind kind, std::int32_t index) { trace.events.push_back({kind, index}); };
  const auto now = [&] { return static_cast<Time>(trace.events.size()); };
  const auto free = [&](AllocationIndex index) {
    TraceAllocation& allocation = trace.allocations[static_cast<std::size_t>(index)];
    if (allocation.death != TraceAllocation::kNeverFreed) return;
    allocation.death = now();
    push(TraceEvent::Kind::kFree, index);
  };
  for (std::size_t at = 0; at < count; ++at) {
    push(TraceEvent::Kind::kOpBegin, static_cast<OpIndex>(at));
    for (const TraceEvent& event : inside[static_cast<std::size_t>(order[at])]) {
      const auto old = static_cast<std::size_t>(event.index);
      if (event.kind == TraceEvent::Kind::kFree) {
        free(new_index[old]);
        continue;
      }
      new_index[old] = static_cast<AllocationIndex>(trace.allocations.size());
      TraceAllocation allocation = pass.trace.allocations[old];
      allocation.op = static_cast<OpIndex>(at);
      allocation.birth = now();
      allocation.death = TraceAllocation::kNeverFreed;
      trace.allocations.push_back(allocation);
      moved.storage_of.push_back(pass.storage_of[old]);
      push(TraceEvent::Kind::kAlloc, new_index[old]);
      if (pass.storage_of[old] >= 0 && pass.trace.allocations[old].death != TraceAllocation::kNeverFreed) {
        alive_in[static_cast<std::size_t>(pass.storage_of[old])].push_back(new_index[old]);
      }
    }
    push(TraceEvent::Kind::kOpEnd, static_cast<OpIndex>(at));
    for (const StorageId storage : dies_after[at]) {
      for (const AllocationIndex index : alive_in[static_cast<std::size_t>(storage)]) free(index);
    }
  }
  trace.ops = static_cast<std::int32_t>(count);
  return moved;
}

Bytes BoundOf(const PassMemory& pass, bool in_place, Bytes alignment) {
  const std::vector<BufferLifetime> lifetimes = ComputeLifetimes(pass.graph, pass.trace, pass.storage_of);
  std::vector<InPlacePair> pairs;
  if (in_place) pairs = FindInPlacePairs(pass.graph, lifetimes, pass.trace);
  return LowerBound(MakePacking(lifetimes, pairs, pass.trace, alignment).problem);
}

std::optional<OpOrder> FindMemoryOrder(const PassMemory& pass, std::size_t fixed, bool in_place, Bytes alignment) {
  const Dependencies dependencies = Dependencies::Of(pass.graph);
  const StorageUses uses(pass.graph);
  const std::vector<Bytes> bytes = PlannedBytes(pass, alignment);
  Bytes best = BoundOf(pass, in_place, alignment);
  std::optional<OpOrder> found;
  for (const bool backwards : {false, true}) {
    OpOrder order = ListSchedule(pass, dependencies, uses, bytes, fixed, backwards).Run();
    const std::optional<PassMemory> moved = InOrder(pass, order);
    if (!moved) return std::nullopt;
    const Bytes bound = BoundOf(*moved, in_place, alignment);
    if (bound >= best) continue;
    best = bound;
    found = std::move(order);
  }
  return found;
}

}  // namespace livepool
