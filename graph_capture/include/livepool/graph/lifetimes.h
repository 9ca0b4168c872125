// When each buffer of a replay is born and dies.
#pragma once

#include <vector>

#include "livepool/graph/op_graph.h"
#include "livepool/graph/trace.h"

namespace livepool {

// Note [The clock]
// Times are positions in the trace of a replay that upstream served. Inside an op the recorded order of
// allocations and frees is kept, so a workspace that is freed in the op makes room for what the op
// allocates after it. Between ops the graph decides: a buffer that holds a storage dies at the end of the
// last op that uses any value on that storage. So everything that one op reads or makes overlaps.
struct BufferLifetime {
  AllocationIndex allocation = -1;
  StorageId storage = -1;  // -1: an extra buffer (an op's workspace)
  Lifetime lifetime;
  // Goes to upstream: it outlives the pass (an output, unless OpGraph::outputs_in_arena, or kept by a library), was
  // made between ops or on another stream.
  bool upstream = false;

  friend bool operator==(const BufferLifetime&, const BufferLifetime&) = default;
};

// One entry for each allocation of `replay`, in its order. `storage_of[i]` is the storage that lives in
// allocation i, or -1.
std::vector<BufferLifetime> ComputeLifetimes(const OpGraph& graph, const Trace& replay,
                                             const std::vector<StorageId>& storage_of);

}  // namespace livepool
