// What a pass computes from constants alone is computed once.
#pragma once

#include "program.h"

namespace livepool {

// Runs the ops that FindConstantOps names, on upstream's memory, and binds their results in place of them. A guard
// among them is gone: it gave the captured result again. Throws what the ops throw.
void FoldConstants(Program& program);

}  // namespace livepool
