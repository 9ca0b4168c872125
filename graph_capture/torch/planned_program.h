// A program with the plan of its memory: what a replay runs.
#pragma once

#include <memory>
#include <vector>

#include "calibration.h"
#include "livepool/base/env.h"
#include "livepool/graph/saved_plan.h"
#include "livepool/graph/served_plan.h"
#include "livepool/pool/arena_pool.h"
#include "program.h"

namespace livepool {

class PlannedProgram {
 public:
  struct Options {
    bool in_place = true;  // outputs of ops may take the slots of inputs
    // If the plan is not proved optimal, a better one is looked for in the background; it is served from the next run
    // on, and results stay the same.
    bool search = true;
    const SavedPlan* saved = nullptr;  // its plan is taken if this program's problem is the same
    bool lend_outputs =
        false;  // outputs that are planned are lent to the caller (Note [Loans]); otherwise he owns their slots
  };
  // Plans the allocations that `calibration` saw; the plan is judged before it can be served. Throws InvalidPlan.
  PlannedProgram(Program program, const Calibration& calibration, ArenaPool& pool, const Options& options);
  PlannedProgram(const PlannedProgram&) = delete;
  PlannedProgram& operator=(const PlannedProgram&) = delete;

  struct Run {
    std::vector<at::Tensor> outputs;
    std::int64_t hits = 0;
    std::int64_t misses = 0;
  };
  // Runs the program on `inputs`, which fit it, from an arena that is borrowed for the run. Several threads may be
  // in here. A run that is given up (GuardFailed), or that fails and writes to nothing of the caller's, leaves no
  // effects. Where no arena can be had, the run is on upstream's memory; throws c10::OutOfMemoryError if that is not
  // there either.
  Run Serve(std::vector<at::Tensor> inputs, Fill fill);

  const Program& program() const { return program_; }
  // The plan is, or began as, that of the file.
  bool as_saved() const { return as_saved_; }
  const Problem& problem() const { return problem_; }
  // The plan in service.
  Plan plan() const { return plan_->Current()->plan(); }
  // A better plan is being looked for.
  bool searching() const { return plan_->Searching(); }
  // The plan for a pass whose caller runs the ops himself; to be kept until he has given the arena back.
  std::shared_ptr<ServedPlan> TakePlan() { return plan_->ForNextPass(pool_); }
  // For each op the input whose slot its output takes, or -1.
  const std::vector<ValueId>& in_place_inputs() const { return in_place_input_; }
  std::int64_t in_place_buffers() const { return in_place_buffers_; }

 private:
  Run RunUpstream(std::vector<at::Tensor> inputs) const;
  Run ServeOnce(std::vector<at::Tensor> inputs, Fill fill);

  const Program program_;
  ArenaPool& pool_;
  std::vector<ValueId> in_place_input_;
  std::int64_t in_place_buffers_ = 0;
  bool as_saved_ = false;
  Problem problem_;
  const bool lend_outputs_;
  std::unique_ptr<PlanInService> plan_;
};

}  // namespace livepool
