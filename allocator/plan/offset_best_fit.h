// Offset best fit.
//
// Fixed buffers are obstacles, placed first. Then each buffer, in a given order, goes to the start of the
// smallest gap that holds it, among the gaps that the placed buffers alive at the same time leave between them;
// of equal gaps the lowest; on top of those buffers if no gap holds it. The order decides the quality: by birth it
// is what an online allocator does, by size it is "greedy by size".
//
//     bytes
//     [8, 9) |   +---D---+      C needs 2 bytes while A, B and D live. The gaps [1, 4) and [6, 8) hold them;
//     [6, 8) |     <- C         [6, 8) is the smaller one.
//     [4, 6) | +---B---+
//     [1, 4) |
//     [0, 1) | +-----A-----+
//            +-----------------> time
//
// Complexity: O(sum over buffers of k log n) for k placed buffers that overlap in time; O(n) memory.
// Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020 (by size); XLA's
// GlobalDecreasingSizeBestFitHeap (by size and by lifetime); ONNX Runtime's memory pattern planner (by birth).
#pragma once

#include <cstddef>
#include <vector>

#include "livepool/plan/problem.h"
#include "rule.h"

namespace livepool {

// A rule (rule.h). Takes the buffers in `order`: the indices of all, each once. Honours fixed offsets.
[[nodiscard]] RuleResult OffsetBestFit(const Problem& problem, const std::vector<std::size_t>& order,
                                       Bytes limit = kNoLimit);

}  // namespace livepool
