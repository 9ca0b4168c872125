#include "livepool/torch/cuda_pass.h"

#include <exception>

#include "cuda_allocator.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

CudaAllocator& Installed() {
  CudaAllocator* allocator = InstalledCudaAllocator();
  if (allocator == nullptr)
    throw NotInstalled("livepool is not installed for cuda: call livepool.install(\"cuda\") first");
  return *allocator;
}

cudaStream_t AsStream(StreamHandle stream) { return static_cast<cudaStream_t>(stream); }

}  // namespace

void BeginDevicePass(int device, PlannedArena& arena, StreamHandle stream) {
  CudaDevice& state = Installed().Device(device);
  state.OrderOf(arena).BeginPass(AsStream(stream));
  state.stats().CloseWindow();
}

void EndDevicePass(int device, PlannedArena& arena, StreamHandle stream) noexcept {
  // Begun before, so that nothing here can throw.
  CudaDevice& state = Installed().Device(device);
  state.OrderOf(arena).EndPass(AsStream(stream));
  try {
    state.stats().CloseWindow();
  } catch (const std::exception&) {
    // Upstream refuses to be asked: no peak of this pass.
  }
}

void FreedOnDevice(int device, PlannedArena& arena, StreamHandle stream) noexcept {
  if (!ProcessIsExiting()) Installed().Device(device).OrderOf(arena).GivenBack(AsStream(stream));
}

bool CudaServingForbidden(int device, StreamHandle stream) {
  if (Installed().Device(device).open_pools().Covers(AsStream(stream))) return true;
  const OnDevice on(device);
  return !InOwnCapture() && IsCapturing(AsStream(stream));
}

}  // namespace livepool
