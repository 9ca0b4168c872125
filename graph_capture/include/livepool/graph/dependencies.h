// Which ops must run before which, whatever the order of the rest.
#pragma once

#include <vector>

#include "livepool/graph/op_graph.h"

namespace livepool {

// For ops a < b of the recorded order, b depends on a if
//   - b uses a value (a view, perhaps) that a makes;
//   - one of them writes to (or makes) a storage that the other one uses;
//   - both have an effect (random, asserting, steering the program, foreign) or write to a tensor of the caller: these
//     keep their order, so that random numbers are drawn as in eager, and what may give the replay up comes before
//     what cannot be taken back.
// Pairs that follow from others are left out. Linear in the number of uses.
struct Dependencies {
  std::vector<std::vector<OpIndex>> successors;  // for each op, without repetition
  std::vector<std::int32_t> predecessors;        // how many each op has

  static Dependencies Of(const OpGraph& graph);
};

}  // namespace livepool
