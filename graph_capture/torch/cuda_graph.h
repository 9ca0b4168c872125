// A captured CUDA graph, and what all CUDA graphs of a device share.
//
// In a build without CUDA each function here throws Error.
#pragma once

#include <ATen/core/Generator.h>

#include <functional>
#include <memory>
#include <vector>

#include "livepool/pool/arena_pool.h"

namespace livepool {

// Note [One home for all graphs of a device]
// The graphs that livepool captures on a device all use the addresses of one arena, and one graph pool of torch's for
// what is not planned. So they hold the memory of the largest, not of all. That is safe in any order of launches:
// whoever launches holds the arena, which makes launches follow one another on the device too (BeginDevicePass), from
// the copies of the arguments to the copies of the outputs. Somebody who finds the arena taken runs the plain replay.
class GraphHome {
 public:
  // Made at the first call and never destroyed.
  static GraphHome& Of(ArenaPool& pool);

  // The home keeps its arena while somebody is in it.
  void Enter();
  void Leave();
  // The arena, held for the caller, with `height` bytes mapped and no live slot below; null if somebody else holds it
  // or if a slot is live there. Throws OutOfMemory. Give it back with Return.
  PlannedArena* TryHold(Bytes height);
  void Return(PlannedArena& arena);

 private:
  friend class CudaGraph;
  friend class CaptureStream;
  struct Impl;
  explicit GraphHome(std::unique_ptr<Impl> impl);
  ~GraphHome() = delete;

  Impl* const impl_;
};

// Makes the home's stream for captures the current one, for a scope: it runs after what the caller's stream has been
// given, and that stream goes on after it.
class CaptureStream {
 public:
  explicit CaptureStream(GraphHome& home);
  ~CaptureStream();
  CaptureStream(const CaptureStream&) = delete;
  CaptureStream& operator=(const CaptureStream&) = delete;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

class CudaGraph {
 public:
  // Captures what `work` launches, inside a CaptureStream; nothing runs. The caller holds `arena`, which stays pinned
  // while the graph lives. `generators` are those that `work` draws from beside the default one: each launch draws on.
  // Throws what `work` throws, and c10::Error if CUDA cannot capture it; then nothing is left of the attempt.
  CudaGraph(GraphHome& home, PlannedArena& arena, const std::vector<at::Generator>& generators,
            const std::function<void()>& work);
  ~CudaGraph();
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  // On the calling thread's current stream of the device. The caller holds the arena.
  void Launch();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace livepool
