// Refuses malformed problems before a rule sees them.
#pragma once

#include "livepool/plan/problem.h"

namespace livepool {

// Throws InvalidInput as MakePlan promises. What passes here can be planned by every rule without overflow:
//     max(fixed offset + size) + sum(size + alignment - 1 of the others) < kNoLimit,
// and no rule places a buffer higher than on top of all others.
void CheckProblem(const Problem& problem);

}  // namespace livepool
