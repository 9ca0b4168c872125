// Orders of the ops in which less memory is alive at once.
#pragma once

#include <optional>
#include <vector>

#include "livepool/graph/in_place.h"
#include "livepool/graph/op_graph.h"
#include "livepool/graph/trace.h"

namespace livepool {

// order[i] is the op (by its recorded index) that runs as the i-th.
using OpOrder = std::vector<OpIndex>;

// A pass as far as its memory goes: what a calibration has seen.
struct PassMemory {
  OpGraph graph;
  Trace trace;
  std::vector<StorageId> storage_of;  // for each allocation of the trace
};

// The pass in another order, which keeps all dependencies: each op does inside what it did, and a buffer that outlived
// its op is freed after the last op that uses it. None if memory that is no tensor's passes from one op to another, or
// if something was seen to live longer than its uses.
std::optional<PassMemory> InOrder(const PassMemory& pass, const OpOrder& order);

// The bytes alive at once at the worst moment, of what is planned: the packing problem's lower bound.
Bytes BoundOf(const PassMemory& pass, bool in_place, Bytes alignment);

// The best order found in which the bound is lower than in the recorded one; none if there is none. The first
// `fixed` ops stay where they are.
//
// Two list schedules are tried (Coffman and Graham's scheme with memory as the priority): forwards, the ready op that
// adds the fewest bytes runs next; backwards, the ready op that takes away the most runs last. Ties keep the recorded
// order. O(n log n) in uses and ops.
std::optional<OpOrder> FindMemoryOrder(const PassMemory& pass, std::size_t fixed, bool in_place, Bytes alignment);

}  // namespace livepool
