// Runs a program: boxed dispatcher calls from C++, each value dropped after its last use.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include <vector>

#include "modes.h"
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

// A run that its caller takes op by op, in their captured modes (Note [Modes of an op]): these hold on the calling
// thread from construction to destruction.
class ProgramRun {
 public:
  // `inputs`: as many as at capture, checked by the caller. Like all values, each is dropped after its last use.
  ProgramRun(const Program& program, std::vector<at::Tensor> inputs, RunObserver& observer);
  // Runs the ops [begin, end). Throws GuardFailed if a result that steers the program differs from the captured one;
  // what an op throws passes through unchanged.
  void Ops(std::size_t begin, std::size_t end);
  const at::Tensor& value(ValueId id) const { return values_[static_cast<std::size_t>(id)]; }
  // After the last op.
  std::vector<at::Tensor> Outputs() const;

 private:
  const Program& program_;
  RunObserver& observer_;
  ModesSwitch modes_;
  std::vector<at::Tensor> values_;
  torch::jit::Stack stack_;
};

// View tracking, which a replay may skip, is what tells autograd that a saved tensor was changed: this tells it.
void MarkWritten(const Program& program, const std::vector<at::Tensor>& inputs);

// Runs `program` on `inputs` (as many as at capture, checked by the caller) and returns its outputs.
// Throws as ProgramRun::Ops does.
std::vector<at::Tensor> RunProgram(const Program& program, std::vector<at::Tensor> inputs, RunObserver& observer);

}  // namespace livepool
