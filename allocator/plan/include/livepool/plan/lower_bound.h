// What no plan can beat.
#pragma once

#include "livepool/base/units.h"
#include "livepool/plan/problem.h"

namespace livepool {

// Max over time of the bytes alive at once; 0 for the empty problem. A buffer that dies when another one is
// born is not alive together with it (lifetimes are half-open). Alignment and fixed offsets, which can only
// raise the height of a plan, are not counted. O(n log n).
// Throws InvalidInput if the bytes alive at once pass 64 bits.
[[nodiscard]] Bytes LowerBound(const Problem& problem);

}  // namespace livepool
