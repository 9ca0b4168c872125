#include "tensor_versions.h"

namespace livepool {

std::optional<Versions> VersionsOf(const std::vector<at::Tensor>& tensors) {
  Versions versions;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.is_inference()) return std::nullopt;
    versions.push_back({.impl = decltype(Version::impl)(tensor.getIntrusivePtr()),
                        .data = tensor.const_data_ptr(),
                        .count = static_cast<std::uint32_t>(tensor._version())});
  }
  return versions;
}

}  // namespace livepool
