// TorchScript values as flat tensors: what is a tensor goes into the graph, the rest is compared.
#pragma once

#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace livepool {

// Where the tensors sit in values that may be tuples, lists and dicts, and what everything else is.
class IValueStructure {
 public:
  // Appends the tensors of `values` to `tensors`. Throws CaptureRefused for objects, generators and the like.
  IValueStructure(const std::vector<c10::IValue>& values, std::vector<at::Tensor>& tensors);

  // Equal texts mean equal structures: "(T, [T, T], {"a": T}, 3, None)".
  const std::string& text() const { return text_; }

  // The values with `tensors` in their places.
  std::vector<c10::IValue> Rebuild(const std::vector<at::Tensor>& tensors) const;

 private:
  std::vector<c10::IValue> blanks_;  // the values, with an empty tensor for each tensor
  std::string text_;
};

}  // namespace livepool
