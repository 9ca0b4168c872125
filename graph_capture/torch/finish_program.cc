#include "finish_program.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "copied_inputs.h"
#include "fold_constants.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

void RemoveDeadOps(Program& program) {
  const std::vector<bool> live = program.graph.LiveOps();
  program.KeepOps([&](std::size_t i) { return live[i]; });
}

void CheckOrderOfEffects(const Program& program) {
  std::string written_by;
  for (std::size_t i = 0; i < program.code.size(); ++i) {
    const Op& op = program.graph.ops[i];
    if (!program.code[i].reads_unwritten.empty()) throw CaptureRefused(program.code[i].reads_unwritten);
    if (op.guard && !written_by.empty()) {
      throw CaptureRefused(op.name + " depends on data and comes after " + written_by +
                           ", which writes to a tensor of the caller: a replay could not be given up there");
    }
    for (const ValueId value : op.writes) {
      const StorageKind kind = program.graph.storage(program.graph.value(value).storage).kind;
      if (kind == StorageKind::kInput || kind == StorageKind::kState) written_by = op.name;
    }
  }
}

// A tensor argument that is the same in every pass becomes a constant; what is left in `bound` are values
// that stand in lists or among the outputs.
void BindConstants(Program& program) {
  std::unordered_map<ValueId, at::Tensor> bound(program.bound.begin(), program.bound.end());
  std::unordered_set<ValueId> used;
  std::unordered_set<ValueId> kept(program.graph.outputs.begin(), program.graph.outputs.end());
  for (Instruction& instruction : program.code) {
    for (Argument& argument : instruction.arguments) {
      used.insert(argument.values.begin(), argument.values.end());
      if (argument.kind != Argument::Kind::kValue) {
        kept.insert(argument.values.begin(), argument.values.end());
      } else if (const auto it = bound.find(argument.values[0]); it != bound.end()) {
        argument = {.constant = it->second};
      }
    }
  }
  used.insert(kept.begin(), kept.end());
  for (StateTensor& state : program.state) state.used = used.contains(state.value);
  std::erase_if(program.bound, [&](const auto& each) { return !kept.contains(each.first); });
}

// A composite that became one op takes the values with it that its inner ops made.
void CheckDefined(const Program& program) {
  std::vector<bool> defined(program.graph.values.size(), false);
  const auto define = [&](ValueId value) { defined[static_cast<std::size_t>(value)] = true; };
  for (const ValueId value : program.inputs) define(value);
  for (const auto& each : program.bound) define(each.first);
  for (const Op& op : program.graph.ops) {
    for (const ValueId value : op.inputs) {
      if (!defined[static_cast<std::size_t>(value)])
        throw CaptureRefused(op.name + " uses a tensor that was made inside another op");
    }
    for (const ValueId value : op.outputs) define(value);
  }
  for (const ValueId value : program.graph.outputs) {
    if (!defined[static_cast<std::size_t>(value)])
      throw CaptureRefused("an output was made inside an op that does not return it");
  }
}

void FindWritten(Program& program) {
  const std::vector<bool> written = program.graph.WrittenStorages();
  const auto storage = [&](ValueId value) { return static_cast<std::size_t>(program.graph.value(value).storage); };
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    if (written[storage(program.inputs[i])]) program.written_inputs.push_back(i);
  }
  for (const StateTensor& state : program.state) {
    if (written[storage(state.value)]) program.written_state.push_back(state.tensor);
  }
}

// Operators of other namespaces may have kernels in autograd's layer alone, and an output that lies in a tensor of the
// caller must share that tensor's version counter, which view tracking does.
bool MaySkipAutograd(const OpGraph& graph) {
  return std::all_of(graph.ops.begin(), graph.ops.end(), [](const Op& op) { return op.name.starts_with("aten::"); }) &&
         std::none_of(graph.outputs.begin(), graph.outputs.end(), [&](ValueId id) {
           const StorageKind kind = graph.storage(graph.value(id).storage).kind;
           return kind == StorageKind::kInput || kind == StorageKind::kState;
         });
}

}  // namespace

Program FinishProgram(Program recorded, const FinishOptions& options) {
  Program program = std::move(recorded);
  RemoveDeadOps(program);
  if (options.fold_constants) {
    FoldConstants(program);
    RemoveDeadOps(program);
  }
  CheckOrderOfEffects(program);
  CheckDefined(program);
  FindWritten(program);
  program.graph.outputs_in_arena = options.outputs_in_arena;
  if (options.fixed_addresses) {
    program.not_graphable = WhyNotGraphable(program.graph);
    if (!program.not_graphable) {
      CopyInputs(program);
      program.graph.outputs_in_arena = true;
    }
  }
  BindConstants(program);
  program.guarded =
      std::any_of(program.graph.ops.begin(), program.graph.ops.end(), [](const Op& op) { return op.guard; });
  program.skips_autograd = MaySkipAutograd(program.graph);
  FindDrops(program);
  return program;
}

void FindDrops(Program& program) {
  program.drops.assign(program.code.size(), {});
  const std::vector<OpIndex> last_use = program.graph.LastUseOfValues();
  for (std::size_t value = 0; value < last_use.size(); ++value) {
    if (last_use[value] < 0 || static_cast<std::size_t>(last_use[value]) >= program.code.size()) continue;
    program.drops[static_cast<std::size_t>(last_use[value])].push_back(static_cast<ValueId>(value));
  }
}

}  // namespace livepool
