// Launches a planned program as a CUDA graph, and runs it op by op where that cannot be.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cuda_graph.h"
#include "planned_program.h"
#include "served_outputs.h"

namespace livepool {

// Tells the user, on stderr, that a pass he wanted as a CUDA graph is none.
void SayNotLaunched(const std::string& why);

// Note [A pass as a CUDA graph]
// The program copies its arguments first (copied_inputs.h) and has its outputs in the arena. The graph holds the ops
// after the copies, on the addresses that the plan has on the home's arena. A launch is: hold the arena, copy the
// arguments to where the plan has them, launch, copy the outputs out. A launch needs what the capture had: that
// arena without live slots, and the arguments that are not copied at their addresses. If one of these differs, the ops
// are run one by one for that pass; after a second pass in a row with the same new addresses, and for a new plan (Note
// [Swapping plans]), the graph is captured anew.
class GraphRunner {
 public:
  struct Options {
    bool launch = true;         // false: never as a graph (a rehearsal: all else is the same, on the CPU too)
    bool lend_outputs = false;  // outputs are the arena's bytes, on loan (Note [Loans])
  };
  struct Counts {
    std::int64_t launches = 0;
    std::int64_t captures = 0;
    std::string not_launched;  // why the last pass that was not launched was not; empty if all were
  };

  // `planned` has fixed addresses (FinishOptions) and outlives this.
  GraphRunner(PlannedProgram& planned, ArenaPool& pool, Options options);
  ~GraphRunner();
  GraphRunner(const GraphRunner&) = delete;
  GraphRunner& operator=(const GraphRunner&) = delete;

  // Captures the graph, so that the first launch need not. `inputs` fit the program; nothing runs on them.
  void Prepare(const std::vector<at::Tensor>& inputs);
  // As PlannedProgram::Serve. Several threads may be in here. `fill` other than kNone fills the arena before a launch.
  PlannedProgram::Run Serve(const std::vector<at::Tensor>& inputs, Fill fill);

  Counts counts() const;

 private:
  class HeldArena;
  struct Captured;  // what a launch needs

  bool MayLaunch() const;
  bool IsReady(PlannedArena& arena, const std::shared_ptr<ServedPlan>& plan, const std::vector<at::Tensor>& inputs);
  void DropFor(PlannedArena& arena, const ServedPlan& plan);
  void CaptureOn(PlannedArena& arena, const std::shared_ptr<ServedPlan>& plan, const std::vector<at::Tensor>& inputs);
  PlannedProgram::Run Launch(PlannedArena& arena, const std::vector<at::Tensor>& inputs, Fill fill);
  PlannedProgram::Run RunOps(const std::vector<at::Tensor>& inputs, Fill fill);
  void NotLaunched(const std::string& why, bool warn);

  const Program& program() const { return planned_.program(); }

  PlannedProgram& planned_;
  ArenaPool& pool_;
  const Options options_;
  GraphHome* const home_;  // null: no launches
  std::atomic<bool> given_up_{false};
  std::atomic<std::int64_t> launches_{0}, captures_{0};
  std::unique_ptr<Captured> captured_;     // the holder of the home's arena only
  std::vector<const void*> wanted_fixed_;  // likewise: where the fixed arguments were in the last pass
  // Note [Handles before a capture]
  // cuBLAS and cuDNN make their handles at a thread's first use of them, and that cannot be captured. So a thread that
  // finds no graph runs the ops at that pass, and captures at its next one.
  std::set<std::uint64_t> threads_;  // likewise: that have run the ops, by ThreadNumber
  mutable std::mutex mutex_;         // for not_launched_
  std::string not_launched_;
};

}  // namespace livepool
