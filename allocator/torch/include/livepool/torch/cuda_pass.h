// What a pass on a GPU does beside serving: order between streams, and staying out of the user's captures.
//
// Streams are cudaStream_t; they are passed as StreamHandle, so that this header needs no CUDA. In a build
// without CUDA each function here throws Error.
#pragma once

#include "livepool/pool/planned_arena.h"

namespace livepool {

// Around everything that runs on an arena: a pass, or the launch of a CUDA graph over it. All kernels that
// used the arena before run first, on whichever stream they were launched; BeginDevicePass makes `stream`
// wait for them. The caller holds the arena. `stream` is destroyed only after the next pass on the arena has
// begun (torch's own streams never are).
// While `stream` is being captured neither does anything: what happens then is ordered by the pair around
// the launch of the graph.
void BeginDevicePass(int device, PlannedArena& arena, StreamHandle stream);
// Also to be called when the pass ends by an exception.
void EndDevicePass(int device, PlannedArena& arena, StreamHandle stream) noexcept;

// Bytes that the launch of a CUDA graph on `stream` had left to its caller are given back: what uses `arena` next runs
// after all that `stream` has been given so far. No slot covers them, so that no pass knows of that stream.
void FreedOnDevice(int device, PlannedArena& arena, StreamHandle stream) noexcept;

// True while slots may not be served to the calling thread on `stream`: they would become part of somebody
// else's CUDA graph or MemPool. Ask before a pass begins: inside a pass the allocator sees MemPool scopes and
// torch's own captures by itself, but not a capture that was begun with the CUDA runtime.
bool CudaServingForbidden(int device, StreamHandle stream);

// A capture that the calling thread begins inside this scope is livepool's own: slots are served in it.
class OwnCaptureScope {
 public:
  OwnCaptureScope();
  ~OwnCaptureScope();
  OwnCaptureScope(const OwnCaptureScope&) = delete;
  OwnCaptureScope& operator=(const OwnCaptureScope&) = delete;
};

}  // namespace livepool
