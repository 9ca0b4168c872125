// Counts what a sink hears, and keeps which slots were freed.
#pragma once

#include <vector>

#include "livepool/pool/thread_state.h"

namespace livepool {

class SlotFreeSink final : public TraceSink {
 public:
  SlotFreeSink() { CurrentThread().sink = this; }
  ~SlotFreeSink() override { CurrentThread().sink = nullptr; }

  void OnAlloc(DeviceId, const void*, Bytes, StreamHandle) override { ++allocated; }
  void OnFree(DeviceId, const void*) override { ++freed; }
  void OnSlotFree(DeviceId device, const void* address) override {
    devices.push_back(device);
    slots.push_back(address);
  }

  int allocated = 0, freed = 0;  // of upstream's memory
  std::vector<DeviceId> devices;
  std::vector<const void*> slots;
};

}  // namespace livepool
