// Which outputs may take the slot of an input that dies in the same op.
#pragma once

#include <vector>

#include "livepool/graph/lifetimes.h"
#include "livepool/graph/op_graph.h"
#include "livepool/graph/trace.h"

namespace livepool {

// The output buffer of `op` may take the slot of the buffer of `input`.
struct InPlacePair {
  OpIndex op = 0;
  ValueId input = 0;                // the value whose storage must have no other holder at run time
  AllocationIndex predecessor = 0;  // the buffer of `input`
  AllocationIndex successor = 0;    // the buffer of the op's output

  friend bool operator==(const InPlacePair&, const InPlacePair&) = default;
};

// Note [In-place rule]
// A pointwise op reads each element before it writes the element at the same place, so its output may
// overwrite an input, but only if all of this holds:
//   1. the op is tagged pointwise, is no _foreach_ op, and has one output, which has a buffer of its own
//      made in this op;
//   2. the input's buffer was made by an earlier op of the pass and dies in this op by the graph (no later op
//      uses any value on its storage), and it was not seen to live longer;
//   3. input and output have equal dtype, sizes and strides, both are dense without overlap, start at
//      offset 0 and cover their whole storage (equal byte size alone is not enough: a permuted input is
//      read after its place was overwritten);
//   4. no other value on the input's storage is alive in this op. If it is an argument too, `y + y.t()` reads
//      what is already overwritten; torch does not notice, as the two storages differ. If it is not, the
//      storage's one holder can not be told at run time;
//   5. the op does not write to the input.
// Each buffer is in at most one pair as predecessor and one as successor: chains, no trees.
std::vector<InPlacePair> FindInPlacePairs(const OpGraph& graph, const std::vector<BufferLifetime>& lifetimes,
                                          const Trace& replay);

}  // namespace livepool
