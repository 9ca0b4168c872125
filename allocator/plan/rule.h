// What all rules of the planner have in common.
//
// A rule is a function from a checked problem (check_problem.h) to offsets. It is given a limit, the height of the
// best plan so far, and may give up as soon as it sees that it will not stay below. It honours alignment. Fixed
// offsets it honours only if its header says so; if not, it is not called for a problem that has one.
// Its result depends on nothing but its arguments, and not on the order of problem.buffers.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "livepool/base/units.h"

namespace livepool {

// As in Plan: offsets[i] belongs to problem.buffers[i].
using Offsets = std::vector<Bytes>;

// Offsets with which every buffer ends below the limit, or nothing.
using RuleResult = std::optional<Offsets>;

inline constexpr Bytes kNoLimit = std::numeric_limits<Bytes>::max();

}  // namespace livepool
