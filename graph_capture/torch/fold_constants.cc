#include "fold_constants.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "executor.h"
#include "livepool/graph/constant_ops.h"

namespace livepool {
namespace {

// A result beyond this is made anew in each pass, from slots: kept, it would be held for ever.
constexpr Bytes kKeep = 64_KiB;

// The constant ops that `found.folded` need, and these.
std::vector<bool> ToRun(const OpGraph& graph, const ConstantOps& found) {
  std::vector<bool> needed(graph.storages.size(), false);
  std::vector<bool> run(graph.ops.size(), false);
  const auto storage_of = [&](ValueId id) { return static_cast<std::size_t>(graph.value(id).storage); };
  for (std::size_t i = graph.ops.size(); i-- > 0;) {
    const Op& op = graph.ops[i];
    if (!found.constant[i]) continue;
    run[i] = found.folded[i] ||
             std::any_of(op.outputs.begin(), op.outputs.end(), [&](ValueId id) { return needed[storage_of(id)]; });
    if (!run[i]) continue;
    for (const ValueId id : op.inputs) needed[storage_of(id)] = true;
  }
  return run;
}

class NoObserver final : public RunObserver {
 public:
  void BeforeOp(OpIndex, const std::vector<at::Tensor>&) override {}
  void AfterOp(OpIndex, const std::vector<at::Tensor>&) override {}
};

}  // namespace

void FoldConstants(Program& program) {
  const ConstantOps found = FindConstantOps(program.graph, kKeep);
  if (std::find(found.folded.begin(), found.folded.end(), true) == found.folded.end()) return;
  const std::vector<bool> to_run = ToRun(program.graph, found);
  program.drops.assign(program.code.size(), {});
  {
    const c10::InferenceMode off(false);  // a tensor made in inference mode could not be used outside of it
    NoObserver nobody;
    ProgramRun run(program, {}, nobody);
    for (std::size_t i = 0; i < to_run.size(); ++i) {
      if (!to_run[i]) continue;
      run.Ops(i, i + 1);
      if (!found.folded[i]) continue;
      for (const ValueId id : program.graph.ops[i].outputs) program.bound.emplace_back(id, run.value(id));
    }
  }
  for (std::size_t i = 0; i < found.folded.size(); ++i) {
    if (!found.folded[i]) continue;
    for (const ValueId id : program.graph.ops[i].outputs) {
      program.graph.storages[static_cast<std::size_t>(program.graph.value(id).storage)].kind = StorageKind::kConstant;
    }
  }
  program.KeepOps([&](std::size_t i) { return !found.folded[i]; });
}

}  // namespace livepool
