// What capture and replay need of the device: streams, generators, and passes on them.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "livepool/pool/arena_pool.h"
#include "livepool/pool/device.h"

namespace livepool {

c10::Device ToTorch(DeviceId device);
// The device that `tensors` live on: CUDA if one of them does, else the host. Throws CaptureRefused if they
// are on several CUDA devices or on a kind of device that livepool does not serve.
DeviceId DeviceOf(const std::vector<at::Tensor>& tensors);

// The calling thread's stream on `device`; null on the host.
StreamHandle CurrentStream(DeviceId device);
// Waits until the device has done its work.
void Synchronize(DeviceId device);
// True while the calling thread's stream is being captured into a CUDA graph.
bool CapturingStream(DeviceId device);
// True while slots may not be served to the calling thread: they would become part of the caller's own CUDA
// graph or MemPool.
bool ServingForbidden(DeviceId device);

// True if `generator` is the default one of its device.
bool IsDefaultGenerator(const at::Generator& generator);

// States of generators, to put them back.
class GeneratorStates {
 public:
  // Of the default generators that a pass on `device` may draw from (the CPU's, and the device's), and of `more`.
  static GeneratorStates Save(DeviceId device, const std::vector<at::Generator>& more);

  void Add(at::Generator generator);
  void Add(const GeneratorStates& others) {
    states_.insert(states_.end(), others.states_.begin(), others.states_.end());
  }
  bool Contains(const at::Generator& generator) const;
  std::size_t size() const { return states_.size(); }
  void Restore() const;
  // Equal states of the same generators, in the same order.
  bool Equal(const GeneratorStates& other) const;

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> states_;
};

// Orders a pass on the device's streams: its work waits for the last work on the arena.
class DevicePassScope {
 public:
  DevicePassScope(DeviceId device, PlannedArena& arena);
  ~DevicePassScope();
  DevicePassScope(const DevicePassScope&) = delete;
  DevicePassScope& operator=(const DevicePassScope&) = delete;

 private:
  const DeviceId device_;
  PlannedArena& arena_;
  const StreamHandle stream_;
};

}  // namespace livepool
