// The last step of a capture: from what was recorded to what is run.
#pragma once

#include "program.h"

namespace livepool {

struct FinishOptions {
  bool fold_constants = true;
  // For a CUDA graph: arguments are copied in, outputs lie in the arena. Where the pass cannot become one,
  // Program::not_graphable says why, and the program stays as it is.
  bool fixed_addresses = false;
  bool outputs_in_arena = false;  // at any rate
};

// Removes dead ops, folds constants, computes when values are dropped, and puts state and constants straight into the
// arguments that use them. Throws CaptureRefused where an op that is left reads bytes that nobody has written,
// or where a guard comes after a write to the caller's tensors (a replay could not be given up there).
Program FinishProgram(Program recorded, const FinishOptions& options);

// Fills Program::drops, for the order that the ops have now.
void FindDrops(Program& program);

}  // namespace livepool
