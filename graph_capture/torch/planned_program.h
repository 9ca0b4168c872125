// A program with the plan of its memory: what a replay runs.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "calibration.h"
#include "livepool/base/env.h"
#include "livepool/plan/plan.h"
#include "livepool/pool/arena_pool.h"
#include "livepool/pool/planned_arena.h"
#include "program.h"

namespace livepool {

class PlannedProgram {
 public:
  // Plans the allocations that `calibration` saw; the plan is judged before it can be served. `in_place`: outputs
  // may take the slots of inputs. Throws InvalidPlan.
  PlannedProgram(Program program, const Calibration& calibration, ArenaPool& pool, bool in_place);
  ~PlannedProgram();
  PlannedProgram(const PlannedProgram&) = delete;
  PlannedProgram& operator=(const PlannedProgram&) = delete;

  struct Run {
    std::vector<at::Tensor> outputs;
    std::int64_t hits = 0;
    std::int64_t misses = 0;
  };
  // Runs the program on `inputs`, which fit it, from an arena that is borrowed for the run. Several threads may be
  // in here. A run that is given up (GuardFailed) leaves no effects. Throws c10::OutOfMemoryError if the arena
  // cannot be had.
  Run Serve(const std::vector<at::Tensor>& inputs, Fill fill);

  const Program& program() const { return program_; }
  const Plan& plan() const { return plan_; }
  // The plan at the addresses of `arena`, for a caller that runs the ops himself.
  const BoundTable& BoundTo(PlannedArena& arena);
  // For each op the input whose slot its output takes, or -1.
  const std::vector<ValueId>& in_place_inputs() const { return in_place_input_; }
  std::int64_t in_place_buffers() const { return in_place_buffers_; }

 private:
  Run RunUpstream(const std::vector<at::Tensor>& inputs) const;
  Run ServeOnce(const std::vector<at::Tensor>& inputs, Fill fill);

  const Program program_;
  ArenaPool& pool_;
  Plan plan_;
  SlotTable table_;
  std::vector<ValueId> in_place_input_;
  std::int64_t in_place_buffers_ = 0;
  std::mutex mutex_;  // for bound_
  std::map<PlannedArena*, BoundTable*> bound_;
};

}  // namespace livepool
