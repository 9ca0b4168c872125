// From lifetimes to the packing problem, and from its plan to the slot table.
#pragma once

#include <vector>

#include "livepool/graph/in_place.h"
#include "livepool/graph/lifetimes.h"
#include "livepool/graph/trace.h"
#include "livepool/plan/plan.h"
#include "livepool/plan/problem.h"
#include "livepool/pool/slot_table.h"

namespace livepool {

// A problem whose buffers stand for one or, in an in-place chain, several allocations.
struct Packing {
  Problem problem;
  // For each allocation the index of its buffer in `problem`, or -1: it goes upstream.
  std::vector<std::int32_t> buffer_of;
  friend bool operator==(const Packing&, const Packing&) = default;
};

// Sizes are rounded up to `alignment`, which is also the alignment of every buffer.
Packing MakePacking(const std::vector<BufferLifetime>& lifetimes, const std::vector<InPlacePair>& pairs,
                    const Trace& replay, Bytes alignment);

// The table that serves `plan`, which must be valid for `packing.problem`.
SlotTable MakeSlotTable(const Packing& packing, const Plan& plan, const std::vector<InPlacePair>& pairs,
                        const Trace& replay, Bytes alignment);

// The same table for another plan of the same problem: its ranges lie elsewhere.
SlotTable MovedTo(SlotTable table, const Plan& plan);

}  // namespace livepool
