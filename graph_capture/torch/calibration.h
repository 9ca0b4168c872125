// A replay to see which allocations each op makes.
#pragma once

#include <vector>

#include "livepool/graph/op_graph.h"
#include "livepool/graph/trace.h"
#include "livepool/pool/arena_pool.h"
#include "program.h"

namespace livepool {

struct Calibration {
  Trace trace;
  std::vector<StorageId> storage_of;  // for each allocation of the trace the storage in it, or -1
};

// Runs `program` on `inputs`, on upstream's memory; or, if it is known how such a run goes, from slots of an arena of
// `pool` without in-place pairs. Throws what the ops throw, and GuardFailed.
Calibration Calibrate(const Program& program, const std::vector<at::Tensor>& inputs, ArenaPool& pool,
                      const Trace* known);

}  // namespace livepool
