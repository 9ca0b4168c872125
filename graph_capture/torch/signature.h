// What must be the same at a replay as at the capture.
#pragma once

#include <string>
#include <vector>

#include "program.h"

namespace livepool {

// What messages call argument `i`. `names` are the arguments' names, or empty.
std::string ArgumentName(std::size_t i, const std::vector<std::string>& names);

// Throws ReplayMismatch, naming the argument, if `inputs` differ from the captured ones in number, dtype,
// device, sizes, strides, or in which of them share storage with each other or with the state.
// `names` are the arguments' names, or empty.
void CheckInputs(const Program& program, const std::vector<at::Tensor>& inputs, const std::vector<std::string>& names);

// Throws ReplayMismatch, naming the tensor, if a state tensor that the program uses was replaced: other data
// pointer, dtype, sizes, strides or device. A version counter would not see `.data = …`, `.to()` or `.half()`.
void CheckState(const Program& program);

// Throws ReplayMismatch, naming it, if autocast or a setting of PyTorch that chooses kernels is another one.
void CheckSurroundings(const Program& program);

}  // namespace livepool
