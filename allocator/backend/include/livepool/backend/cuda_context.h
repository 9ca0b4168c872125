// Makes a CUDA context current for a scope.
#pragma once

#include "livepool/backend/cuda_driver.h"

namespace livepool {

// Driver calls go to the calling thread's current context. An allocator is called on threads that have
// none, or that work on another device, so each entry brings its own and restores the caller's.
class CurrentContext {
 public:
  CurrentContext(const CudaDriver& driver, cuda::Context context)
      : driver_(driver), result_(driver.CtxPushCurrent(context)) {}
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  ~CurrentContext() {
    if (result_ != cuda::kSuccess) return;
    cuda::Context popped = nullptr;
    driver_.CtxPopCurrent(&popped);
  }
  // kSuccess: the context is current.
  cuda::Result result() const { return result_; }

 private:
  const CudaDriver& driver_;
  const cuda::Result result_;
};

}  // namespace livepool
