// What the CUDA allocator asks of the machine, beside upstream. Tests replace it, and run without a GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "livepool/backend/cuda_driver.h"
#include "livepool/base/units.h"

namespace livepool {

struct CudaMachine {
  // The driver, or null with the reason.
  const CudaDriver* (*driver)(std::string* why_not);
  int (*current_device)();
  cudaStream_t (*current_stream)(int device);
  // True while a graph is captured on `stream`, or on one that synchronises with it. Throws nothing.
  bool (*is_capturing)(cudaStream_t stream) noexcept;
  // Bytes that a memory fraction of 1 stands for. Creates no context.
  Bytes (*total_memory)(int device);
};

const CudaMachine& RealMachine();

}  // namespace livepool
