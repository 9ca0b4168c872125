// Who serves a thread's allocations from slots: the replay of a graph, or a pass of plain eager code.
#pragma once

#include "livepool/backend/backend.h"
#include "livepool/base/units.h"
#include "livepool/pool/device.h"

namespace livepool {

class PlannedArena;

class Server {
 public:
  explicit Server(DeviceId device) : device_(device) {}
  virtual ~Server() = default;

  DeviceId device() const { return device_; }

  // The address for an allocation of `size` > 0 bytes on `stream`, or null: it goes upstream. `frame` is an address
  // inside the stack frame of the allocator's own allocate(): it is the same whenever the same calls lead there.
  virtual std::byte* Serve(Bytes size, StreamHandle stream, const void* frame) = 0;

  // The arena that Serve takes slots from, null if there is none yet; and what the plan takes of it, 0 if there is
  // none.
  virtual PlannedArena* arena() const = 0;
  virtual Bytes height() const = 0;

 private:
  const DeviceId device_;
};

}  // namespace livepool
