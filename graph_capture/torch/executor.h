// Runs a program: boxed dispatcher calls from C++, each value dropped after its last use.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "program.h"

namespace livepool {

// Hears of each op of a run. `values` are indexed by ValueId; those that are not alive are undefined.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual void BeforeOp(OpIndex op, const std::vector<at::Tensor>& values) = 0;
  // Before the values whose last use this was are dropped.
  virtual void AfterOp(OpIndex op, const std::vector<at::Tensor>& values) = 0;
};

// Runs `program` on `inputs` (as many as at capture, checked by the caller) and returns its outputs.
// Throws GuardFailed if a result that steers the program differs from the captured one; what an op throws
// passes through unchanged. Ops run in their captured modes (Note [Modes of an op]).
std::vector<at::Tensor> RunProgram(const Program& program, const std::vector<at::Tensor>& inputs, RunObserver& observer);

}  // namespace livepool
