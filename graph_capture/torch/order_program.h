// Moves the ops of a program to where less memory is alive at once.
#pragma once

#include "calibration.h"
#include "program.h"

namespace livepool {

// Changes the order of `program` and of what `calibration` saw of it, if FindMemoryOrder finds a better one for a plan
// with (`in_place`) or without in-place slots; else nothing. `alignment`: what allocations are rounded to. True if so.
bool OrderForMemory(Program& program, Calibration& calibration, bool in_place, Bytes alignment);

}  // namespace livepool
