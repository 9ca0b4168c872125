#include "cuda_machine.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

namespace livepool {
namespace {

int CurrentDevice() { return c10::cuda::current_device(); }

cudaStream_t CurrentStream(int device) {
  return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device));
}

// Also where CUDA says of the default stream that another one, which would synchronise with it, is captured.
bool Capturing(cudaStream_t stream) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t result = cudaStreamIsCapturing(stream, &status);
  if (result == cudaSuccess) return status != cudaStreamCaptureStatusNone;
  (void)cudaGetLastError();  // or torch would blame its own next call
  return result == cudaErrorStreamCaptureImplicit;
}

// What native multiplies the fraction with.
Bytes TotalMemory(int device) {
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  return static_cast<Bytes>(properties.totalGlobalMem);
}

}  // namespace

const CudaMachine& RealMachine() {
  static constexpr CudaMachine machine{.driver = &LoadCudaDriver,
                                       .current_device = &CurrentDevice,
                                       .current_stream = &CurrentStream,
                                       .is_capturing = &Capturing,
                                       .total_memory = &TotalMemory};
  return machine;
}

}  // namespace livepool
