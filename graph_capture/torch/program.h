// What the executor runs: the op graph, and for each op how to call it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

#include "livepool/graph/op_graph.h"
#include "livepool/pool/device.h"
#include "modes.h"

namespace livepool {

// How one argument of an op is made.
struct Argument {
  enum class Kind {
    kConstant,           // `constant`
    kValue,              // the tensor values[0]
    kValueList,          // Tensor[]
    kOptionalValueList,  // Tensor?[]
  };
  static constexpr ValueId kNone = -1;  // an element of a Tensor?[] that is None

  Kind kind = Kind::kConstant;
  c10::IValue constant;
  std::vector<ValueId> values;
};

// What becomes of one result of an op.
struct Result {
  enum class Kind {
    kValue,      // the tensor values[0]; kNone: undefined
    kValueList,  // Tensor[]
    kExpected,   // not a tensor: must be `expected` again, or the replay is not the captured pass
  };
  Kind kind = Kind::kValue;
  std::vector<ValueId> values;
  c10::IValue expected;
};

// One op of the pass. graph.ops[i] and code[i] are the same op.
struct Instruction {
  c10::OperatorHandle op;
  std::vector<Argument> arguments;
  std::vector<Result> results;
  bool guard = false;  // results depend on data: sizes of tensors are compared too
  // Not empty: the op reads bytes that no recorded op has written, and this says which.
  std::string reads_unwritten;
};

// A named tensor that the callable owns, and what it was like at capture.
struct StateTensor {
  std::string name;
  at::Tensor tensor;
  const void* data = nullptr;
  c10::Device device{c10::kCPU};
  ValueId value = 0;
  bool used = false;
};

struct Program {
  DeviceId device;
  OpGraph graph;
  std::vector<Instruction> code;
  std::vector<std::vector<ValueId>> drops;  // values whose last use is op i
  std::vector<ValueId> inputs;              // the value of each argument of the call
  std::vector<c10::Device> input_devices;
  std::vector<std::pair<ValueId, at::Tensor>> bound;  // state and constants that `values` must hold
  std::vector<StateTensor> state;
  ThreadModes modes;
  bool random = false;  // draws from a generator
  // Autograd's and view-tracking's kernels only forward while grad mode is off; a replay skips them, which
  // saves a dispatch per call. Operators of other namespaces may have kernels there alone.
  bool only_aten = false;
};

}  // namespace livepool
