#include "device_context.h"

#include <ATen/Context.h>

#include "livepool/base/error.h"
#include "livepool/torch/cuda_pass.h"

#ifdef LIVEPOOL_HAVE_CUDA
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace livepool {
namespace {

std::vector<at::Generator> Generators(DeviceId device) {
  std::vector<at::Generator> generators{at::globalContext().defaultGenerator(c10::Device(c10::kCPU))};
  if (device.kind == DeviceId::Kind::kCuda) {
    generators.push_back(at::globalContext().defaultGenerator(ToTorch(device)));
  }
  return generators;
}

}  // namespace

c10::Device ToTorch(DeviceId device) {
  if (device.kind == DeviceId::Kind::kHost) return c10::Device(c10::kCPU);
  return {c10::kCUDA, static_cast<c10::DeviceIndex>(device.index)};
}

DeviceId DeviceOf(const std::vector<at::Tensor>& tensors) {
  DeviceId device;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.defined() || tensor.is_cpu()) continue;
    if (!tensor.is_cuda()) {
      throw CaptureRefused("a tensor is on " + tensor.device().str() + "; livepool serves cpu and cuda");
    }
    const DeviceId found{DeviceId::Kind::kCuda, tensor.device().index()};
    if (device.kind == DeviceId::Kind::kCuda && !(device == found)) {
      throw CaptureRefused("tensors are on " + device.Name() + " and " + found.Name() + "; capture one device at a time");
    }
    device = found;
  }
  return device;
}

StreamHandle CurrentStream([[maybe_unused]] DeviceId device) {
#ifdef LIVEPOOL_HAVE_CUDA
  if (device.kind == DeviceId::Kind::kCuda) {
    return c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device.index)).stream();
  }
#endif
  return nullptr;
}

void Synchronize([[maybe_unused]] DeviceId device) {
#ifdef LIVEPOOL_HAVE_CUDA
  if (device.kind == DeviceId::Kind::kCuda) {
    c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device.index)).synchronize();
  }
#endif
}

bool CapturingStream([[maybe_unused]] DeviceId device) {
#ifdef LIVEPOOL_HAVE_CUDA
  if (device.kind == DeviceId::Kind::kCuda) {
    return c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None;
  }
#endif
  return false;
}

bool ServingForbidden(DeviceId device) {
  return device.kind == DeviceId::Kind::kCuda && CudaServingForbidden(device.index, CurrentStream(device));
}

GeneratorStates GeneratorStates::Save(DeviceId device) {
  GeneratorStates saved;
  std::vector<at::Generator> generators = Generators(device);
  for (at::Generator& generator : generators) {
    const std::lock_guard lock(generator.mutex());
    saved.states.push_back(generator.get_state());
  }
  return saved;
}

void GeneratorStates::Restore(DeviceId device) const {
  std::vector<at::Generator> generators = Generators(device);
  for (std::size_t i = 0; i < generators.size(); ++i) {
    const std::lock_guard lock(generators[i].mutex());
    generators[i].set_state(states[i]);
  }
}

bool GeneratorStates::Equal(const GeneratorStates& other) const {
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (!states[i].equal(other.states[i])) return false;
  }
  return true;
}

DevicePassScope::DevicePassScope(DeviceId device, PlannedArena& arena)
    : device_(device), arena_(arena), stream_(CurrentStream(device)) {
  if (device.kind == DeviceId::Kind::kCuda) BeginDevicePass(device.index, arena, stream_);
}

DevicePassScope::~DevicePassScope() {
  if (device_.kind == DeviceId::Kind::kCuda) EndDevicePass(device_.index, arena_, stream_);
}

}  // namespace livepool
