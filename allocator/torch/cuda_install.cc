#include <c10/cuda/CUDAFunctions.h>

#include "cuda_allocator.h"
#include "livepool/base/env.h"
#include "livepool/base/error.h"
#include "livepool/torch/install.h"
#include "livepool/torch/shared_cuda_allocator.h"

namespace livepool {
namespace {

// Wraps the allocator that torch uses at the first call. Makes no CUDA call: it works before and after CUDA
// is initialised, and where there is no GPU.
CudaAllocator& MakeAllocator() {
  static CudaAllocator& allocator = *[] {
    c10_compat::CUDAAllocator* upstream = c10_compat::native::get();
    if (upstream == nullptr) throw Error("livepool: this torch has no CUDA allocator to decorate");
    auto* made = new CudaAllocator(*upstream);  // never destroyed: deleters need it for the life of the process
    made->SetMemoryLimit(GetEnv().memory_limit);
    return made;
  }();
  return allocator;
}

// torch.accelerator and c10::getDeviceAllocator look here. 255 is the highest priority: later calls by torch
// (its own is 1) change nothing.
void Register(CudaAllocator& allocator) { c10::SetAllocator(c10::kCUDA, &allocator, /*priority=*/255); }

}  // namespace

CudaAllocator* InstalledCudaAllocator() { return CudaAllocator::Instance(); }

std::shared_ptr<c10_compat::CUDAAllocator> SharedCudaAllocator() {
  livepool::CheckTorchVersion();
  CudaAllocator& allocator = MakeAllocator();
  Register(allocator);
  return {&allocator, [](c10_compat::CUDAAllocator*) {}};
}

namespace detail {

void InstallCuda() {
  livepool::CheckTorchVersion();
  CudaAllocator& allocator = MakeAllocator();
  c10_compat::native::allocator.store(&allocator);
  Register(allocator);
  if (allocator.initialized()) allocator.ShareMemoryLimit(c10::cuda::device_count());
}

void SetCudaMemoryLimit(std::optional<Bytes> bytes) {
  CudaAllocator& allocator = MakeAllocator();
  allocator.SetMemoryLimit(bytes);
  if (allocator.initialized()) allocator.ShareMemoryLimit(c10::cuda::device_count());
}

std::optional<Bytes> CudaMemoryLimit() { return MakeAllocator().memory_limit(); }

ArenaPool& CudaPool(int index) { return MakeAllocator().Device(index).Pool(); }

std::vector<ArenaPool*> CudaPools() {
  const CudaAllocator* allocator = InstalledCudaAllocator();
  return allocator == nullptr ? std::vector<ArenaPool*>() : allocator->Pools();
}

bool CudaInstalled() {
  const CudaAllocator* allocator = InstalledCudaAllocator();
  return allocator != nullptr && c10_compat::native::get() == allocator;
}

}  // namespace detail
}  // namespace livepool
