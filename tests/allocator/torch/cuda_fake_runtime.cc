// See cuda_on_fakes.h.
#include <cuda_runtime_api.h>

#include "allocator/backend/fake_driver.h"
#include "allocator/torch/cuda_on_fakes.h"

namespace livepool {
namespace {

cudaError_t Wait() { return ++FakeRuntime::waits, cudaSuccess; }

}  // namespace

const CudaDriver* LoadCudaDriver(std::string*) { return &FakeDriver::table(); }

}  // namespace livepool

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) { return *count = 2, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return *least = *greatest = 0, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  properties->totalGlobalMem = std::size_t{8}
                               << 30;  // what an arena reserves; fake driver and upstream say what there is
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return livepool::Wait(); }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  *status = livepool::FakeRuntime::capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return livepool::Wait(); }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned int) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int) { return *event = nullptr, cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return livepool::Wait(); }

}  // extern "C"
