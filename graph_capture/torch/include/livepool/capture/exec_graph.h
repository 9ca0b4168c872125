// Capture a callable once; replay its ops from one arena.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "livepool/base/error.h"
#include "livepool/base/units.h"
#include "livepool/graph/saved_plan.h"

namespace livepool {

using Tensors = std::vector<at::Tensor>;

// A pure function of its arguments and of the state that is declared beside it.
using Callable = std::function<Tensors(const Tensors&)>;

struct CaptureOptions {
  // Tensors that the callable owns, with names for messages: parameters, buffers, caches. They are used by
  // reference: their bytes may change. A tensor of these that gets another data pointer, dtype or shape (set_data,
  // .to()) makes a replay fail. That a *variable* of the callable now holds another tensor cannot be seen from here:
  // capture again then. StateOf(module) lists a module's tensors.
  std::vector<std::pair<std::string, at::Tensor>> state;
  // Names of the arguments, for messages; may be empty.
  std::vector<std::string> argument_names;
  // In-place slots (see Note [In-place rule]); off: every output has bytes of its own.
  bool in_place = true;
  // What is computed from constants alone is computed once, at the capture.
  bool fold_constants = true;
  // Ops are moved where that lowers what is alive at once; data, writes, random numbers and effects keep their order.
  bool order_for_memory = true;
  // Where the plan that the capture makes in a few ms may not be the best, look for a better one on a thread of low
  // priority, and serve it from the next replay on. Results do not change. LIVEPOOL_SEARCH=off switches it off for all.
  bool search_in_background = true;
  // What an earlier capture of the same callable, for the same kind of call, has learnt (ExecGraph::Save): this one is
  // served by it. It cannot make a result wrong, and where it does not fit, GraphReport::not_as_saved says why.
  std::shared_ptr<const SavedPlan> plan;

  // kGraph: the ops are captured into a CUDA graph, and a replay launches that. A pass that cannot be one (on the CPU;
  // the host reads a result; an op waits for the device) is replayed op by op, and GraphReport::not_launched says why.
  // kRehearsal: all that kGraph does except for the graph itself; for tests, and to find out where a fault lies.
  enum class Mode { kReplay, kGraph, kRehearsal };
  Mode mode = Mode::kReplay;
  // The outputs live outside the arena and are the caller's, or (true) they are the arena's own bytes, on loan: good
  // until the thread that got them runs its next pass on the device (a replay of whichever graph, a scope of plain
  // code, the capture of a CUDA graph). What a tensor shows that is kept longer is undefined, NaN with
  // LIVEPOOL_FILL=nan; to drop it late is harmless. One that is an argument of that pass gets memory of its own before,
  // and is good for ever.
  bool outputs_in_arena = false;
};

// Sizes in bytes, as docs/design.md, section "What each figure means", defines them.
struct GraphReport {
  std::int64_t ops = 0;
  std::int64_t buffers = 0;           // allocations of a replay
  std::int64_t in_place_buffers = 0;  // of them, those that took the slot of an input
  Bytes sum_bytes = 0;
  Bytes eager_live_peak_bytes = 0;
  Bytes lower_bound_bytes = 0;
  Bytes arena_bytes = 0;
  std::string algorithm;   // the planner's rule
  bool searching = false;  // a better plan is being looked for; if there is one, a later replay takes it
  double capture_ms = 0;   // recording and calibration
  double plan_ms = 0;
  std::int64_t replays = 0;
  std::int64_t hits = 0;  // over all replays
  std::int64_t misses = 0;
  bool checked = false;       // a replay has been compared with eager, byte for byte
  std::int64_t launches = 0;  // replays that were launches of a CUDA graph
  std::int64_t graphs = 0;    // CUDA graphs captured for it, one after another
  bool as_saved = false;      // the plan is that of CaptureOptions::plan, or was found from there
  std::string not_as_saved;   // why not, if there was one
  std::string not_launched;   // Mode::kGraph: why the last replay that was no launch was none
};

// The captured pass of a callable, with its plan. Replays from several threads at once are safe: each
// borrows an arena of its own.
class ExecGraph {
 public:
  ~ExecGraph();
  ExecGraph(const ExecGraph&) = delete;
  ExecGraph& operator=(const ExecGraph&) = delete;

  // Runs the pass on `inputs` and returns what the callable would return; the outputs are the caller's, or on loan
  // (CaptureOptions::outputs_in_arena). Those of a replay that was checked are always the caller's.
  // The first replay on other bytes than the capture's is compared with the callable itself (LIVEPOOL_CHECK).
  // Throws ReplayMismatch if an input or the state differs in shape, strides, dtype, device or aliasing from
  // the capture's; GuardFailed if the callable would take another path; CheckFailed if the result was wrong
  // (from then on always); what an op throws passes through.
  Tensors Replay(const Tensors& inputs) { return Replay(Tensors(inputs)); }
  // The same, and takes the tensors over: one that nobody else holds is freed after the last op that uses it, so that
  // what upstream serves later in the pass (outputs, say) can have its bytes. A replay that is checked, and one as a
  // CUDA graph, keeps them to its end. If the pass does not begin (ReplayMismatch), `inputs` stays as it was; after any
  // other exception they are gone.
  Tensors Replay(Tensors&& inputs);

  GraphReport Report() const;

  // What another process needs to begin with this graph's plan.
  SavedPlan Save() const;

  // True once a replay may be thrown away: it writes to nothing of the caller's, draws no random numbers, and will
  // not be checked (any more). A caller with checks of its own may then make them while the device still works.
  bool Disposable() const;

  // True if a replay whose inputs fit is never given up: it has no guard, and will not be checked (any more). A caller
  // who would run something else in its place may give the inputs away then.
  bool Unconditional() const;

  // True if a replay writes to its inputs or to the state. An op of a replay that writes may fail after it has written,
  // as it may in eager: the effects up to there stay. Any other replay that fails leaves no effects.
  bool Writes() const;

 private:
  struct Impl;
  explicit ExecGraph(std::unique_ptr<Impl> impl);
  friend std::shared_ptr<ExecGraph> Capture(Callable fn, const Tensors& inputs, CaptureOptions options);

  std::unique_ptr<Impl> impl_;
};

// Runs `fn` once on `inputs` and records its ops, replays them once to see every allocation, and plans. Upstream serves
// both runs, or an arena, as far as options.plan knows them. livepool must be installed for the device of the tensors,
// and grad mode off.
// Side effects of fn on `inputs` and state happen once. Reads of a tensor's bytes by the host are guarded where they go
// through the dispatcher (item()); fn may not read through data_ptr(), which nobody sees here. Throws NotInstalled, or
// CaptureRefused where a graph would be wrong, naming the op.
std::shared_ptr<ExecGraph> Capture(Callable fn, const Tensors& inputs, CaptureOptions options = {});

// Makes the capture that runs on the calling thread, if there is one, end with CaptureRefused(reason): for
// callers that see what the dispatcher does not (a host read of a tensor's bytes). False if there is none, or if an
// op's own kernel is running, whose reads are repeated by each replay.
bool RefuseCurrentCapture(const std::string& reason);

// True while a capture runs its callable on the calling thread.
bool CaptureUnderWay();

// A torch::jit::Module that was frozen has no flag, and says that it trains.
template <typename Module>
bool IsTraining(const Module& module) {
  if constexpr (requires { module.hasattr("training"); })
    return module.hasattr("training") && module.is_training();
  else
    return module.is_training();
}

// The parameters and buffers of a torch::nn::Module or torch::jit::Module, by name. Throws CaptureRefused if the module
// is in training mode. A torch::jit::Module must not be fused (torch::jit::setTensorExprFuserEnabled(false)): the
// dispatcher does not see fused kernels.
template <typename Module>
std::vector<std::pair<std::string, at::Tensor>> StateOf(const Module& module) {
  if (IsTraining(module)) throw CaptureRefused("the module is in training mode; call eval() first");
  std::vector<std::pair<std::string, at::Tensor>> state;
  const auto add = [&](const auto& named) {
    for (const auto& each : named) {
      if constexpr (requires { each.key(); })
        state.emplace_back(each.key(), each.value());
      else
        state.emplace_back(each.name, each.value);
    }
  };
  add(module.named_parameters());
  add(module.named_buffers());
  return state;
}

}  // namespace livepool
