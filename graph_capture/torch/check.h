// A replay compared with the callable itself, byte for byte.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "program.h"

namespace livepool {

struct CheckedRun {
  // The replay's own if nothing is written, all bytes are equal and no output is planned, else eager's.
  std::vector<at::Tensor> outputs;
  std::optional<std::string> fault;  // what differs, and by how much
};

// Runs `replay` and then `eager` from the same start (generators, and tensors that the pass writes to) and
// compares the bytes of outputs and of written tensors. Where they differ, eager runs once more: an element on which
// eager disagrees with itself may be off by 4 times the largest disagreement, any other must be equal. The effects
// that stay are eager's; after a fault or an exception, none. While it runs, nobody else may run the program if that
// writes (ExecGraph::Replay sees to it).
CheckedRun RunChecked(const Program& program, const std::vector<at::Tensor>& inputs,
                      const std::function<std::vector<at::Tensor>()>& replay,
                      const std::function<std::vector<at::Tensor>()>& eager);

}  // namespace livepool
