// The CUDA entry points of a build without CUDA.
#include "livepool/base/error.h"
#include "livepool/torch/cuda_pass.h"
#include "livepool/torch/install.h"
#include "livepool/torch/shared_cuda_allocator.h"

namespace livepool {
namespace {

[[noreturn]] void Refuse() {
  throw Error(
      "livepool: built without CUDA; build with -DLIVEPOOL_WITH_CUDA=ON, a torch that has CUDA, and the CUDA "
      "toolkit's headers");
}

}  // namespace

namespace detail {

void InstallCuda() { Refuse(); }
ArenaPool& CudaPool(int) { Refuse(); }
std::vector<ArenaPool*> CudaPools() { return {}; }
bool CudaInstalled() { return false; }
void SetCudaMemoryLimit(std::optional<Bytes>) { Refuse(); }
std::optional<Bytes> CudaMemoryLimit() { return std::nullopt; }

}  // namespace detail

std::shared_ptr<c10::cuda::CUDACachingAllocator::CUDAAllocator> SharedCudaAllocator() { Refuse(); }

void BeginDevicePass(int, PlannedArena&, StreamHandle) { Refuse(); }
void EndDevicePass(int, PlannedArena&, StreamHandle) noexcept {}
void FreedOnDevice(int, PlannedArena&, StreamHandle) noexcept {}
bool CudaServingForbidden(int, StreamHandle) { Refuse(); }
OwnCaptureScope::OwnCaptureScope() = default;
OwnCaptureScope::~OwnCaptureScope() = default;

}  // namespace livepool
