// Skyline bottom-up: the next buffer is the one that can lie lowest.
//
// The skyline is the top of what is placed, by section: flat segments side by side. Again and again, in the lowest
// segment (the leftmost of equals), the best-ranked buffer that fits between its walls is placed; if none fits, the
// segment is raised to its lower wall and the space below is lost. The rank (order.h) decides the quality; no
// order is best everywhere.
//
//     bytes
//       4 |              +-----+    The lowest segment is [3, 6), at 1. Of the buffers whose ranges lie inside it,
//       3 |              |     |    the best-ranked is placed on it. If there is none, it rises to 2 and becomes
//       2 | +-----+      |     |    one with its left neighbour.
//       1 | |     +~~~~~~+     |
//         +-0-----3------6-----8--> sections
//
// No pair of buffers is ever compared, so that neither time nor memory depends on how many overlap.
// Complexity: O(n log n) plus the queries (unplaced_buffers.h).
// Source: Sekiyama et al., "Profile-guided memory optimization for deep neural networks", 2018, for the skyline;
// google/minimalloc's depth-first search for the orders, of which this is the first dive.
#pragma once

#include <cstddef>
#include <vector>

#include "livepool/plan/problem.h"
#include "rule.h"
#include "sections.h"

namespace livepool {

// A rule (rule.h). `by_rank` lists the indices of all buffers, best first. The space that alignment leaves below a
// buffer is lost. Does not honour fixed offsets.
[[nodiscard]] RuleResult Skyline(const Problem& problem, const Sections& sections,
                                 const std::vector<std::size_t>& by_rank, Bytes limit = kNoLimit);

}  // namespace livepool
