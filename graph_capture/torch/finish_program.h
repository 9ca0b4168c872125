// The last step of a capture: from what was recorded to what is run.
#pragma once

#include "program.h"

namespace livepool {

// Removes dead ops, computes when values are dropped, and puts state and constants straight into the
// arguments that use them. Throws CaptureRefused where an op that is left reads bytes that nobody has written,
// or where a guard comes after a write to the caller's tensors (a replay could not be given up there).
Program FinishProgram(Program recorded);

}  // namespace livepool
