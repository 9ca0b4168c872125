// A replay compared with the callable itself, byte for byte.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "program.h"

namespace livepool {

struct CheckedRun {
  std::vector<at::Tensor> outputs;   // the replay's if good, else eager's
  std::optional<std::string> fault;  // what differs, and by how much
};

// Runs `replay` and then `eager` from the same start (generators, and tensors that the pass writes to) and
// compares the bytes of outputs and of written tensors. Where they differ, eager runs once more; only where
// eager differs from itself by d, a difference of up to 4 d is let pass. The effects that stay are eager's;
// after a fault, none.
CheckedRun RunChecked(const Program& program, const std::vector<at::Tensor>& inputs,
                      const std::function<std::vector<at::Tensor>()>& replay,
                      const std::function<std::vector<at::Tensor>()>& eager);

}  // namespace livepool
