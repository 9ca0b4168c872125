// Tensors as bytes: compared, hashed, saved and put back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "program.h"

namespace livepool {

// Equal dtype, sizes and bytes; NaN equals NaN of the same bits, 0.0 differs from -0.0.
bool SameBytes(const at::Tensor& a, const at::Tensor& b);
bool SameBytes(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b);
// How far `replay` is from `eager`, an equal run of the same, given that `again` is a second run of `eager`.
struct Deviation {
  double by = 0;     // the largest difference at an element that must be equal, infinite where one is NaN or infinite
  double noise = 0;  // the largest finite difference of the two eager runs
};
// All of equal dtype and sizes. Where eager agrees with itself, byte for byte, the replay must agree too; elsewhere it
// may be off by `slack` x noise. None if that holds for every element.
std::optional<Deviation> FindDeviation(const at::Tensor& replay, const at::Tensor& eager, const at::Tensor& again,
                                       double slack);
// A 64-bit hash of the bytes of all tensors, in order.
std::uint64_t HashBytes(const std::vector<at::Tensor>& tensors);

// Copies of tensors, to put their bytes back.
class SavedTensors {
 public:
  // The arguments and state tensors that `program` writes to.
  static SavedTensors OfWritten(const Program& program, const std::vector<at::Tensor>& inputs);

  // Writes the saved bytes back into the tensors.
  void Restore() const;
  // Copies of what the tensors hold now.
  std::vector<at::Tensor> Now() const;
  bool empty() const { return saved_.empty(); }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;  // the tensor, its copy
};

}  // namespace livepool
