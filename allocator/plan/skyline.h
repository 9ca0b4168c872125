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
// Fixed buffers are obstacles. Levels stop at the offset of the lowest one ahead, and a buffer fits only if its top
// does not pass that. When the lowest level has come to an obstacle's offset, its whole range is flat, at that offset:
// then it is placed as any other buffer. (No level on its range can be higher, and none is lower than the lowest.)
//
// No pair of buffers is ever compared, so that neither time nor memory depends on how many overlap.
//
// Tight sections. To reach the lower bound, a section may lose no more than its slack,
//     slack(s) = lower bound - live(s) - what raising has lost on s.
// Where the least slack of the lowest segment is at most `tightness` x the lower bound, only buffers that cover that
// section may be placed, so that what is left of it is never cut into pieces that nothing fits.
// Complexity: O(n log n) plus the queries (unplaced_buffers.h).
// Source: Sekiyama et al., "Profile-guided memory optimization for deep neural networks", 2018, for the skyline;
// google/minimalloc's depth-first search for the orders, of which this is the first dive.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "livepool/plan/problem.h"
#include "range_tree.h"
#include "rule.h"
#include "sections.h"

namespace livepool {

struct SkylineOptions {
  std::vector<std::size_t> by_rank;  // the indices of all buffers, best first
  // Share of the lower bound below which slack is scarce; none: every section is treated alike.
  std::optional<double> tightness = std::nullopt;
  // What slack is measured from, if that is more than the lower bound: fixed buffers may force more.
  Bytes bound = 0;
};

// A rule (rule.h). `tree` is that of `sections`. The space that alignment leaves below a buffer is lost. Honours fixed
// offsets.
[[nodiscard]] RuleResult Skyline(const Problem& problem, const Sections& sections, const RangeTree& tree,
                                 const SkylineOptions& options, Bytes limit = kNoLimit);

}  // namespace livepool
