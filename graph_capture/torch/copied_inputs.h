// A pass whose arguments are copied into buffers of its own first, so that everything after has fixed addresses.
#pragma once

#include "program.h"

namespace livepool {

// Puts ops at the beginning of the pass that copy the arguments which it reads: the copies are buffers like others,
// planned from the first op to the last use. Fills Program::copied_inputs, `copying_ops` and `fixed_inputs`: the
// arguments that are not copied, as the pass writes to them, returns them (or views of them), or as they lie in one
// storage with others. The layout of a copy is the argument's, from the start of its storage.
void CopyInputs(Program& program);

}  // namespace livepool
