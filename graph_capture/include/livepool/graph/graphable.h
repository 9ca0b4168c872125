// Whether a pass can be launched as a CUDA graph: kernels alone, with nothing for the host to do between them.
#pragma once

#include <optional>
#include <string>

#include "livepool/graph/op_graph.h"

namespace livepool {

struct NotGraphable {
  enum class Kind {
    kDependsOnData,     // the host reads a result, or sizes depend on data
    kMakesHostBytes,    // an op gives a tensor on the host, which a launch would not make
    kReadsHostBytes,    // an op reads a tensor on the host that is no constant number
    kInputOnHost,       // an argument on the host is read: a launch would use the capture's
    kReturnsHost,       // an output is on the host
    kInputsShareBytes,  // two arguments lie on one storage
    kInputLayout,       // an argument that begins inside its storage is viewed by as_strided
  };
  Kind kind = Kind::kDependsOnData;
  OpIndex op = -1;     // the op that stands in the way; -1: none does
  std::string reason;  // for people, naming op and tensor

  friend bool operator==(const NotGraphable&, const NotGraphable&) = default;
};

// Why `graph`, whose constants are folded, cannot be launched as a whole; none if it can, as far as the ops show: one
// that waits for the device inside is found out when it is captured. A kernel reads a number on the host (0-dim) when
// it is captured, so such a number must be a constant; all other bytes must be on the device.
std::optional<NotGraphable> WhyNotGraphable(const OpGraph& graph);

}  // namespace livepool
