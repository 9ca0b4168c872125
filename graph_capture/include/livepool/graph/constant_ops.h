// Which ops give the same bytes in every pass, and which of these a pass need not run.
#pragma once

#include <vector>

#include "livepool/graph/op_graph.h"

namespace livepool {

struct ConstantOps {
  // A pure op on constants alone. No storage that is written to, nor one of an output, is made by such an op: the
  // caller owns his outputs, and a write would reach the next pass.
  std::vector<bool> constant;
  // Of these, the ones to run once, at the capture: their results are kept.
  std::vector<bool> folded;
};

// A result of up to `keep` bytes is kept; a larger one is made anew in each pass, as a buffer that dies holds less
// memory. Results on the host are always kept, and what is made from them; guards on constants have one result and
// are folded too. Linear time.
ConstantOps FindConstantOps(const OpGraph& graph, Bytes keep);

}  // namespace livepool
