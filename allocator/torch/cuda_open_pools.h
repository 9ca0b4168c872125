// The MemPool scopes and CUDA graph captures that are open on one device.
#pragma once

#include <atomic>
#include <shared_mutex>
#include <vector>

#include "c10_compat.h"
#include "cuda_machine.h"

namespace livepool {

// Note [Captures and slots]
// torch opens a pool (beginAllocateToPool) for a CUDA graph capture and for use_mem_pool. What it wants
// there is memory of that pool: a slot would be baked into the user's graph, and be planned again by the
// next pass. The pool's filter says for which streams and threads it is open, so other threads are served on.
// Thread-safe. With no pool open, Covers costs one load.
class OpenPools {
 public:
  explicit OpenPools(const CudaMachine& machine) : machine_(machine) {}

  // `stream`: the current one, which torch captures if the pool is for a capture. `own`: livepool's own capture, in
  // which slots are served.
  void Begin(c10_compat::MempoolId_t id, c10_compat::PoolFilter filter, cudaStream_t stream, bool own);
  void End(c10_compat::MempoolId_t id);
  // True if an allocation of the calling thread on `stream` belongs to a pool that is not ours.
  bool Covers(cudaStream_t stream) const;
  // True while a graph is captured through torch, by any thread: freeing memory and waiting for the device are
  // illegal then. In a MemPool scope they are not.
  bool Capturing() const;

 private:
  struct Open {
    c10_compat::MempoolId_t id;
    c10_compat::PoolFilter filter;
    cudaStream_t stream;
    bool own;
  };

  bool any() const { return count_.load(std::memory_order_acquire) > 0; }

  const CudaMachine& machine_;
  mutable std::shared_mutex mutex_;
  std::vector<Open> open_;
  std::atomic<int> count_{0};
};

// True on a thread inside an OwnCaptureScope (cuda_pass.h).
bool InOwnCapture();

}  // namespace livepool
