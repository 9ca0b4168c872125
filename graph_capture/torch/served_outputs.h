// The outputs of a CUDA graph, which lie at fixed places: copies of them for the caller, or the places themselves.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <functional>
#include <vector>

#include "lent_outputs.h"
#include "program.h"

namespace livepool {

// Remembers where the outputs of a run are, without holding them.
class ServedOutputs {
 public:
  ServedOutputs() = default;
  // `outputs` of a run of `program`, which lives as long as this.
  ServedOutputs(const Program& program, const std::vector<at::Tensor>& outputs);

  // Tensors of the same layout, on copies of the same storages: outputs that share bytes go on doing so. An output in
  // the bytes of an argument or of the state is made from that, as eager does. The copies are made on the current
  // stream, on upstream's memory.
  std::vector<at::Tensor> Copy(const std::vector<at::Tensor>& inputs) const;
  // The same without copying: the bytes themselves, on loan.
  std::vector<at::Tensor> Lend(const std::vector<at::Tensor>& inputs, Lender& lender) const;

 private:
  struct Output {
    ValueId value = 0;
    TensorBits bits;
    std::size_t bytes = 0;      // index into bytes_, for outputs of the pass's own
    std::ptrdiff_t state = -1;  // or the index of the state that it lies in
    std::ptrdiff_t input = -1;  // or that of the argument
  };
  std::vector<at::Tensor> Make(const std::vector<at::Tensor>& inputs,
                               const std::function<c10::Storage(const c10::Storage&)>& place) const;
  at::Tensor PartOf(const at::Tensor& owner, ValueId owner_value, const Output& output) const;

  const Program* program_ = nullptr;
  std::vector<Output> outputs_;
  std::vector<c10::Storage> bytes_;  // not owned
};

}  // namespace livepool
