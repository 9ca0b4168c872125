#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <cstdint>
#include <string>

#include "c10_compat.h"
#include "livepool/base/error.h"
#include "livepool/torch/install.h"

namespace livepool {
namespace {

// "2.11" of the eight bytes {major, minor, patch, ABI tag (5)} that torch calls its ABI version.
std::string MajorMinor(std::uint64_t version) {
  return std::to_string(version >> 56) + "." + std::to_string((version >> 48) & 0xFF);
}

}  // namespace

void detail::CheckTorchVersion(std::uint64_t running, std::uint64_t built) {
  if (MajorMinor(running) == MajorMinor(built)) return;
  throw UnsupportedTorch("livepool: built for torch " + MajorMinor(built) + ", but torch " + MajorMinor(running) +
                         " is running; install torch " + MajorMinor(built) +
                         " or the livepool that was built for torch " + MajorMinor(running));
}

void CheckTorchVersion() { detail::CheckTorchVersion(aoti_torch_abi_version(), TORCH_ABI_VERSION); }

}  // namespace livepool
