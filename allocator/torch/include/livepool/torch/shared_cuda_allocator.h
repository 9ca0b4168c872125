// livepool's CUDA allocator as an object, for PyTorch's own way to change allocators.
#pragma once

#include <memory>

namespace c10::cuda::CUDACachingAllocator {
class CUDAAllocator;
}

namespace livepool {

// For torch.cuda.memory.change_current_allocator, which refuses once CUDA is initialised, and then makes the
// allocator the current one by itself. It leaves c10::GetAllocator(kCUDA), which torch.accelerator uses, as it
// was: that is done here. The object is immortal, the pointer's deleter does nothing.
// Throws as Install(kCuda) does.
std::shared_ptr<c10::cuda::CUDACachingAllocator::CUDAAllocator> SharedCudaAllocator();

}  // namespace livepool
