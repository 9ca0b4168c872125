// The one run-time edge from the pool back to its users: graph_capture implements it.
#pragma once

#include "livepool/backend/backend.h"
#include "livepool/base/units.h"
#include "livepool/pool/device.h"

namespace livepool {

// Hears of allocations and frees on the thread that it is set for (see thread_state.h), while that thread
// records: before an address is freed, after it was allocated. Called inside an allocator, and from deleters: it may
// not allocate from that allocator, take the GIL, or throw in OnFree.
class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual void OnAlloc(DeviceId device, const void* address, Bytes size, StreamHandle stream) = 0;
  virtual void OnFree(DeviceId device, const void* address) = 0;
  // The same for a slot. Who serves knows his slots: only a sink that records what another one serves wants to hear.
  virtual void OnSlotFree(DeviceId /*device*/, const void* /*address*/) {}
};

}  // namespace livepool
