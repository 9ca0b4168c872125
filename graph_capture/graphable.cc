#include "livepool/graph/graphable.h"

namespace livepool {
namespace {

using Kind = NotGraphable::Kind;

std::optional<NotGraphable> WhyNot(const OpGraph& graph, OpIndex index) {
  const Op& op = graph.ops[static_cast<std::size_t>(index)];
  const auto because = [&](Kind kind, const std::string& what) {
    return NotGraphable{.kind = kind, .op = index, .reason = op.name + " (op " + std::to_string(index) + ") " + what};
  };
  if (op.guard)
    return because(Kind::kDependsOnData, "gives a result, or sizes, that the host must look at in each pass");
  for (const ValueId id : op.inputs) {
    const Value& value = graph.value(id);
    if (!value.on_host) continue;
    const StorageKind kind = graph.storage(value.storage).kind;
    if (kind == StorageKind::kInput) return because(Kind::kInputOnHost, "reads an argument on the CPU");
    if (kind != StorageKind::kConstant || !value.sizes.empty()) {
      return because(Kind::kReadsHostBytes,
                     kind == StorageKind::kState ? "reads state on the CPU" : "reads a tensor on the CPU");
    }
  }
  for (const ValueId id : op.outputs) {
    if (graph.value(id).on_host) return because(Kind::kMakesHostBytes, "gives a tensor on the CPU");
  }
  return std::nullopt;
}

}  // namespace

std::optional<NotGraphable> WhyNotGraphable(const OpGraph& graph) {
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    if (auto reason = WhyNot(graph, static_cast<OpIndex>(i))) return reason;
  }
  for (const ValueId id : graph.outputs) {
    if (graph.value(id).on_host) return NotGraphable{.kind = Kind::kReturnsHost, .reason = "an output is on the CPU"};
  }
  return std::nullopt;
}

}  // namespace livepool
