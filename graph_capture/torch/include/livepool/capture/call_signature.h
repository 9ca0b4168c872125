// What two calls must have in common to be served by one graph.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace livepool {

// Of each tensor: dtype, device, sizes, strides, storage offset, conj, neg and requires_grad bit, and with which
// earlier one it shares its storage; autocast; the settings of PyTorch that choose kernels. All of it is encoded in one
// row of integers, so that equality is equality of rows: a hash only finds candidates. Inference mode is not part of
// it, as a replay follows its caller's (Note [Modes of an op]); nor is the state, which a replay compares itself.
class CallSignature {
 public:
  // The signature of a call on the calling thread. Throws CaptureRefused if no graph can serve it at all: grad mode,
  // dispatch modes, functorch, sparse, nested or quantised tensors, subclasses, undefined tensors.
  static CallSignature Of(const std::vector<at::Tensor>& inputs);

  std::size_t Hash() const;
  friend bool operator==(const CallSignature& a, const CallSignature& b) { return a.words_ == b.words_; }

  // The row, but for which device of its type a tensor is on: the same in another process under the same torch.
  std::vector<std::int64_t> Portable() const;

  // One text for each tensor, e.g. "Float[2, 8]".
  std::vector<std::string> ToTexts() const;

 private:
  using Words = c10::SmallVector<std::int64_t, 64>;
  explicit CallSignature(Words words) : words_(std::move(words)) {}

  Words words_;  // the number of tensors; of each a header, its sizes and its strides; then the surroundings
};

}  // namespace livepool
