// Problems whose best plan can be read off, in O(n log n) and without trying anything.
//
// Each is a rule (rule.h) that gives nothing where it does not apply; what it gives ends at the lower bound.
#pragma once

#include "livepool/plan/problem.h"
#include "rule.h"

namespace livepool {

// Of buffers that are all alive at one time: one on top of the other, the largest alignment first. Nothing if two of
// them never live together, one has a fixed offset, or alignments leave space between them.
[[nodiscard]] RuleResult Stack(const Problem& problem);

// Of buffers that all have one size: that is the colouring of an interval graph, and taking the lowest free place at
// each birth needs no more places than buffers live at once. Nothing if sizes differ, one buffer has a fixed offset, or
// an alignment does not divide the size.
// Source: Gupta, Lee and Leung, "An optimal solution for the channel-assignment problem", 1979.
[[nodiscard]] RuleResult ColourIntervals(const Problem& problem);

}  // namespace livepool
