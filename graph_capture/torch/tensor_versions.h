// Whether tensors are those that were seen before, with the bytes that they had then, as far as PyTorch counts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace livepool {

// What tells whether a tensor is one that was seen before, with the same bytes: its impl, where the bytes are, and the
// version counter. The impl is held weakly, or another tensor could come to its address (Note [Weak references]).
struct Version {
  c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> impl;
  const void* data = nullptr;
  std::uint32_t count = 0;

  friend bool operator==(const Version& a, const Version& b) {
    return a.impl._unsafe_get_target() == b.impl._unsafe_get_target() && a.data == b.data && a.count == b.count;
  }
};
using Versions = std::vector<Version>;

// None if one of the tensors counts no versions (it was made in inference mode).
std::optional<Versions> VersionsOf(const std::vector<at::Tensor>& tensors);

}  // namespace livepool
