#include "livepool/graph/op_graph.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace livepool {

bool Value::SameGeometry(const Value& other) const {
  return dtype == other.dtype && sizes == other.sizes && strides == other.strides &&
         storage_offset == other.storage_offset;
}

std::int64_t Value::numel() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

bool Value::NonOverlappingAndDense() const {
  if (numel() == 0) return true;
  // Sorted by stride, each dimension must step by exactly the extent of those below it.
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return sizes[i] == 1; });
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return strides[a] < strides[b]; });
  std::int64_t expected = 1;
  for (const std::size_t i : order) {
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

std::vector<OpIndex> OpGraph::LastUseOfValues() const {
  std::vector<OpIndex> last(values.size(), -1);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    for (const auto* ids : {&ops[i].inputs, &ops[i].outputs}) {
      for (const ValueId id : *ids) last[static_cast<std::size_t>(id)] = static_cast<OpIndex>(i);
    }
  }
  for (const ValueId id : outputs) last[static_cast<std::size_t>(id)] = static_cast<OpIndex>(ops.size());
  return last;
}

std::vector<OpIndex> OpGraph::LastUseOfStorages() const {
  const std::vector<OpIndex> of_values = LastUseOfValues();
  std::vector<OpIndex> last(storages.size(), -1);
  for (std::size_t i = 0; i < values.size(); ++i) {
    OpIndex& storage = last[static_cast<std::size_t>(values[i].storage)];
    storage = std::max(storage, of_values[i]);
  }
  return last;
}

std::vector<bool> OpGraph::WrittenStorages() const {
  std::vector<bool> written(storages.size(), false);
  for (const Op& op : ops) {
    for (const ValueId id : op.writes) written[static_cast<std::size_t>(value(id).storage)] = true;
  }
  return written;
}

std::vector<bool> OpGraph::LiveOps() const {
  std::vector<bool> needed(storages.size(), false);
  const auto storage_of = [&](ValueId id) { return static_cast<std::size_t>(value(id).storage); };
  for (std::size_t i = 0; i < storages.size(); ++i) {
    // What the caller can see after the pass.
    needed[i] = storages[i].kind == StorageKind::kInput || storages[i].kind == StorageKind::kState;
  }
  for (const ValueId id : outputs) needed[storage_of(id)] = true;

  std::vector<bool> live(ops.size(), false);
  for (std::size_t i = ops.size(); i-- > 0;) {
    const Op& op = ops[i];
    const auto is_needed = [&](ValueId id) { return needed[storage_of(id)]; };
    // A view of a needed storage is not needed for that; reading it is what makes it needed.
    live[i] = op.effect || std::any_of(op.writes.begin(), op.writes.end(), is_needed) ||
              std::any_of(op.outputs.begin(), op.outputs.end(), is_needed);
    if (!live[i]) continue;
    for (const ValueId id : op.inputs) needed[storage_of(id)] = true;
  }
  return live;
}

}  // namespace livepool
