// What fixed buffers force beyond the lower bound.
#pragma once

#include "livepool/base/units.h"
#include "livepool/plan/problem.h"

namespace livepool {

// No plan of a checked problem (check_problem.h) is lower; 0 if no buffer is fixed. The largest of
//  1. the top of each fixed buffer;
//  2. for each other buffer, the top of its lowest place between the fixed ones that live with it;
//  3. at each birth, the level of the other live buffers' bytes, poured between the live fixed ones from below. A gap
//     takes a multiple of the sizes' common divisor, and nothing if it is smaller than the smallest of them.
// O(n log n), plus the pairs of a fixed and another buffer that overlap.
[[nodiscard]] Bytes FixedBound(const Problem& problem);

}  // namespace livepool
