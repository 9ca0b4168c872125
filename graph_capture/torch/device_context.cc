#include "device_context.h"

#include <ATen/Context.h>

#include <algorithm>
#include <mutex>

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
      throw CaptureRefused("tensors are on " + device.Name() + " and " + found.Name() +
                           "; capture one device at a time");
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

bool IsDefaultGenerator(const at::Generator& generator) {
  return at::globalContext().defaultGenerator(generator.device()) == generator;
}

GeneratorStates GeneratorStates::Save(DeviceId device, const std::vector<at::Generator>& more) {
  GeneratorStates saved;
  for (const at::Generator& generator : Generators(device)) saved.Add(generator);
  for (const at::Generator& generator : more) saved.Add(generator);
  return saved;
}

void GeneratorStates::Add(at::Generator generator) {
  const std::lock_guard lock(generator.mutex());
  at::Tensor state = generator.get_state();
  states_.emplace_back(generator, std::move(state));
}

bool GeneratorStates::Contains(const at::Generator& generator) const {
  return std::any_of(states_.begin(), states_.end(), [&](const auto& each) { return each.first == generator; });
}

void GeneratorStates::Restore() const {
  for (const auto& [generator, state] : states_) {
    at::Generator each = generator;
    const std::lock_guard lock(each.mutex());
    each.set_state(state);
  }
}

bool GeneratorStates::Equal(const GeneratorStates& other) const {
  return std::equal(states_.begin(), states_.end(), other.states_.begin(), other.states_.end(),
                    [](const auto& a, const auto& b) { return a.first == b.first && a.second.equal(b.second); });
}

DevicePassScope::DevicePassScope(DeviceId device, PlannedArena& arena)
    : device_(device), arena_(arena), stream_(CurrentStream(device)) {
  if (device.kind == DeviceId::Kind::kCuda) BeginDevicePass(device.index, arena, stream_);
}

DevicePassScope::~DevicePassScope() {
  if (device_.kind == DeviceId::Kind::kCuda) EndDevicePass(device_.index, arena_, stream_);
}

}  // namespace livepool
