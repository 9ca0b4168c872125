// Op graphs and traces by hand, for the tests of this folder.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "livepool/graph/lifetimes.h"
#include "livepool/graph/op_graph.h"
#include "livepool/graph/trace.h"

namespace livepool::testing {

constexpr std::int32_t kFloat = 6;

inline std::vector<std::int64_t> Contiguous(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t step = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = step;
    step *= std::max<std::int64_t>(sizes[i], 1);
  }
  return strides;
}

inline Value FloatValue(std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
  return {.storage = 0, .dtype = kFloat, .element_size = 4, .sizes = std::move(sizes), .strides = std::move(strides)};
}

struct OpTraits {
  std::vector<ValueId> writes = {};
  bool pointwise = false;
  bool effect = false;
  bool guard = false;
  bool pure = true;
};

// Grows a graph in execution order.
class GraphBuilder {
 public:
  // A contiguous float tensor on a storage of its own.
  ValueId Tensor(const std::vector<std::int64_t>& sizes, StorageKind kind = StorageKind::kIntermediate) {
    Value value = FloatValue(sizes, Contiguous(sizes));
    value.storage = static_cast<StorageId>(graph.storages.size());
    graph.storages.push_back({.kind = kind, .size = value.DenseBytes()});
    return Add(std::move(value));
  }
  // Another value on the storage of `base`.
  ValueId View(ValueId base, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides,
               std::int64_t offset = 0) {
    Value value = FloatValue(std::move(sizes), std::move(strides));
    value.storage = graph.value(base).storage;
    value.storage_offset = offset;
    return Add(std::move(value));
  }
  ValueId Add(Value value) {
    graph.values.push_back(std::move(value));
    return static_cast<ValueId>(graph.values.size() - 1);
  }
  OpIndex Op(std::string name, std::vector<ValueId> inputs, std::vector<ValueId> outputs, OpTraits traits = {}) {
    graph.ops.push_back({.name = std::move(name),
                         .inputs = std::move(inputs),
                         .outputs = std::move(outputs),
                         .writes = std::move(traits.writes),
                         .pointwise = traits.pointwise,
                         .effect = traits.effect,
                         .guard = traits.guard,
                         .pure = traits.pure});
    return static_cast<OpIndex>(graph.ops.size() - 1);
  }

  OpGraph graph;
};

// What one op does with memory, in its order.
struct Step {
  enum class Kind { kAllocStorage, kAllocWorkspace, kFreeWorkspace };
  Kind kind;
  std::int32_t id;  // of the storage, or of the workspace
  Bytes size;
};
using Steps = std::vector<std::vector<Step>>;  // for each op

// Each op allocates its outputs' storages, and nothing else.
inline Steps OutputsOnly(const OpGraph& graph) {
  Steps steps(graph.ops.size());
  std::vector<bool> made(graph.storages.size(), false);
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    for (const ValueId id : graph.ops[i].outputs) {
      const StorageId storage = graph.value(id).storage;
      if (graph.storage(storage).kind != StorageKind::kIntermediate || made[static_cast<std::size_t>(storage)])
        continue;
      made[static_cast<std::size_t>(storage)] = true;
      steps[i].push_back({Step::Kind::kAllocStorage, storage, graph.storage(storage).size});
    }
  }
  return steps;
}

// For each op the storages that the executor lets go of after it: all of their values have had their last use.
inline std::vector<std::vector<StorageId>> DropsOf(const OpGraph& graph) {
  std::vector<std::vector<StorageId>> drops(graph.ops.size());
  const std::vector<OpIndex> last_use = graph.LastUseOfStorages();
  for (std::size_t i = 0; i < last_use.size(); ++i) {
    if (graph.storages[i].kind != StorageKind::kIntermediate || last_use[i] < 0) continue;
    if (static_cast<std::size_t>(last_use[i]) < drops.size())
      drops[static_cast<std::size_t>(last_use[i])].push_back(static_cast<StorageId>(i));
  }
  return drops;
}

// What a calibration writes: the trace of a run on upstream's memory, and what lives in each allocation.
struct Recorded {
  Trace trace;
  std::vector<StorageId> storage_of;
};

inline Recorded Record(const OpGraph& graph, const Steps& steps) {
  TraceWriter writer({}, nullptr);
  Recorded recorded;
  const auto drops = DropsOf(graph);
  std::vector<std::uintptr_t> address_of_storage(graph.storages.size()), address_of_workspace;
  std::uintptr_t next = 4096;
  const auto to_pointer = [](std::uintptr_t address) { return reinterpret_cast<const void*>(address); };
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    writer.BeginOp();
    for (const Step& step : steps[i]) {
      const auto id = static_cast<std::size_t>(step.id);
      if (step.kind == Step::Kind::kFreeWorkspace) {
        writer.OnFree({}, to_pointer(address_of_workspace[id]));
        continue;
      }
      const bool storage = step.kind == Step::Kind::kAllocStorage;
      if (!storage) address_of_workspace.resize(std::max(address_of_workspace.size(), id + 1));
      (storage ? address_of_storage : address_of_workspace)[id] = next;
      writer.OnAlloc({}, to_pointer(next), step.size, nullptr);
      recorded.storage_of.push_back(storage ? step.id : -1);
      next += 1 << 20;
    }
    writer.EndOp();
    for (const StorageId id : drops[i]) writer.OnFree({}, to_pointer(address_of_storage[static_cast<std::size_t>(id)]));
  }
  recorded.trace = writer.trace();
  return recorded;
}

inline std::vector<BufferLifetime> LifetimesOf(const OpGraph& graph, const Recorded& recorded) {
  return ComputeLifetimes(graph, recorded.trace, recorded.storage_of);
}

}  // namespace livepool::testing
