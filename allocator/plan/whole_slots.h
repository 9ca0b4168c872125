// Greedy best fit of whole slots, in birth order: livepool's first planner and the baseline in tables.
//
// A slot holds one buffer at a time, like the entries of the node-to-slot map that a graph executor keeps: a small
// buffer in a large slot wastes the rest of it. Each buffer, when it is born, takes the smallest free slot that is
// large enough (of equal ones that opened first), or else opens a new slot of its own size. Slots never grow.
// A slot's alignment is the largest of its buffers'; a slot is passed over if neither its alignment nor the buffer's
// is a multiple of the other.
//
// Complexity: O(n log n), plus the slots passed over for their alignment.
// Source: the shared-object planners of TFLite (Pisarchyk and Lee, 2020) and ExecuTorch's greedy algorithm.
#pragma once

#include "livepool/plan/problem.h"
#include "rule.h"

namespace livepool {

// A rule (rule.h). Does not honour fixed offsets.
[[nodiscard]] RuleResult WholeSlots(const Problem& problem, Bytes limit = kNoLimit);

}  // namespace livepool
