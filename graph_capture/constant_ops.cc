#include "livepool/graph/constant_ops.h"

#include <algorithm>

namespace livepool {

ConstantOps FindConstantOps(const OpGraph& graph, Bytes keep) {
  const std::vector<bool> written = graph.WrittenStorages();
  const auto storage_of = [&](ValueId id) { return static_cast<std::size_t>(graph.value(id).storage); };
  std::vector<bool> returned(graph.storages.size(), false);
  for (const ValueId id : graph.outputs) returned[storage_of(id)] = true;

  std::vector<bool> constant(graph.storages.size());  // bytes that are the same in every pass
  for (std::size_t i = 0; i < constant.size(); ++i) {
    constant[i] = graph.storages[i].kind == StorageKind::kConstant && !written[i];
  }
  std::vector<bool> kept = constant;  // of these, the ones that need not be made anew

  ConstantOps found{.constant = std::vector<bool>(graph.ops.size()), .folded = std::vector<bool>(graph.ops.size())};
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const Op& op = graph.ops[i];
    const bool can_keep = std::none_of(op.outputs.begin(), op.outputs.end(),
                                       [&](ValueId id) { return written[storage_of(id)] || returned[storage_of(id)]; });
    const bool is_constant =
        op.pure && op.writes.empty() && can_keep &&
        std::all_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) { return constant[storage_of(id)]; });
    found.constant[i] = is_constant;
    if (!is_constant) continue;
    const bool from_host =
        std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) { return graph.value(id).on_host; });
    const auto is_kept = [&](ValueId id) {
      const std::size_t storage = storage_of(id);
      if (constant[storage]) return static_cast<bool>(kept[storage]);  // a view
      return from_host || graph.value(id).on_host || graph.storages[storage].size <= keep;
    };
    found.folded[i] = op.guard || std::all_of(op.outputs.begin(), op.outputs.end(), is_kept);
    for (const ValueId id : op.outputs) {
      // Not before all outputs were looked at: two of one op may share a storage.
      kept[storage_of(id)] = found.folded[i];
    }
    for (const ValueId id : op.outputs) constant[storage_of(id)] = true;
  }
  return found;
}

}  // namespace livepool
