#include "cuda_machine.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include "cuda_order.h"

namespace livepool {
namespace {

int CurrentDevice() { return c10::cuda::current_device(); }

cudaStream_t CurrentStream(int device) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device));
}

// What native multiplies the fraction with.
Bytes TotalMemory(int device) {
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  return static_cast<Bytes>(properties.totalGlobalMem);
}

}  // namespace

const CudaMachine& RealMachine() {
  static constexpr CudaMachine machine{.driver = &LoadCudaDriver, .current_device = &CurrentDevice,
                                       .current_stream = &CurrentStream, .is_capturing = &IsCapturing,
                                       .total_memory = &TotalMemory};
  return machine;
}

}  // namespace livepool
