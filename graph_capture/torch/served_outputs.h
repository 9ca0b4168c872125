// The outputs of a pass that lie in slots: copies of them for the caller, or the slots themselves.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "program.h"

namespace livepool {

// A tensor of the same layout on the same bytes, which it does not hold.
at::Tensor NotOwned(const at::Tensor& tensor);

// Remembers where the outputs of a run are, without holding them.
class ServedOutputs {
 public:
  ServedOutputs() = default;
  // `outputs` of a run of `program`, which lives as long as this.
  ServedOutputs(const Program& program, const std::vector<at::Tensor>& outputs);

  // Tensors of the same layout, on copies of the same storages: outputs that share bytes go on doing so. An output in
  // the bytes of an argument or of the state is made from that, as eager does. The copies are made on the current
  // stream, on upstream's memory.
  std::vector<at::Tensor> Copy(const std::vector<at::Tensor>& inputs) const { return Make(inputs, true); }
  // The same without copying: the caller sees what the next pass writes there.
  std::vector<at::Tensor> InPlace(const std::vector<at::Tensor>& inputs) const { return Make(inputs, false); }

 private:
  struct Output {
    ValueId value = 0;
    TensorBits bits;
    std::size_t bytes = 0;       // index into bytes_, for outputs of the pass's own
    std::ptrdiff_t state = -1;   // or the index of the state that it lies in
    std::ptrdiff_t input = -1;   // or that of the argument
  };
  std::vector<at::Tensor> Make(const std::vector<at::Tensor>& inputs, bool copy) const;
  at::Tensor PartOf(const at::Tensor& owner, ValueId owner_value, const Output& output) const;

  const Program* program_ = nullptr;
  std::vector<Output> outputs_;
  std::vector<at::Tensor> bytes_;  // each storage as bytes, not owned
};

}  // namespace livepool
