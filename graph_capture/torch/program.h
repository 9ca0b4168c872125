// What the executor runs: the op graph, and for each op how to call it.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

#include <optional>
#include <string>
#include <vector>

#include "livepool/graph/graphable.h"
#include "livepool/graph/op_graph.h"
#include "livepool/pool/device.h"
#include "modes.h"
#include "settings.h"

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
  std::size_t modes = 0;  // index into Program::modes
  // Not empty: the op reads bytes that no recorded op has written, and this says which.
  std::string reads_unwritten;
};

// Bits of a tensor that change what its bytes mean, or what a program that asks does.
struct TensorBits {
  bool conj = false;
  bool neg = false;
  bool requires_grad = false;
  static TensorBits Of(const at::Tensor& tensor) {
    return {.conj = tensor.is_conj(), .neg = tensor.is_neg(), .requires_grad = tensor.requires_grad()};
  }
  friend bool operator==(const TensorBits&, const TensorBits&) = default;
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

// An argument that the first ops of the pass copy (copied_inputs.h).
struct CopiedInput {
  std::size_t input = 0;  // index into Program::inputs
  ValueId copy = 0;       // a value on the copy's storage
  std::int64_t span = 0;  // elements from the argument's first to its last
};

struct Program {
  DeviceId device;
  OpGraph graph;
  std::vector<Instruction> code;
  std::vector<std::vector<ValueId>> drops;  // values whose last use is op i
  std::vector<ValueId> inputs;              // the value of each argument of the call
  std::vector<c10::Device> input_devices;
  std::vector<TensorBits> input_bits;
  std::vector<std::pair<ValueId, at::Tensor>> bound;  // state and constants that `values` must hold
  std::vector<StateTensor> state;
  std::vector<at::Tensor> written_state;    // state whose bytes the pass writes
  std::vector<std::size_t> written_inputs;  // indices into `inputs`, likewise
  std::vector<ThreadModes> modes;           // in which the ops were recorded; [0]: in which the pass began
  GlobalSettings settings;
  std::vector<at::Generator> generators;      // given to ops by name, apart from the default ones
  bool random = false;                        // draws from a generator
  bool guarded = false;                       // has an op that is a guard
  std::optional<NotGraphable> not_graphable;  // if it was to be launched as a CUDA graph
  std::size_t copying_ops = 0;                // that many ops at the beginning make the copies of copied_inputs
  std::vector<CopiedInput> copied_inputs;
  std::vector<std::size_t> fixed_inputs;  // indices of the other arguments that ops use: at their own addresses
  bool Writes() const { return !written_inputs.empty() || !written_state.empty(); }
  // Autograd's and view-tracking's kernels only forward while grad mode is off; a replay skips them where it may, which
  // saves a dispatch per call.
  bool skips_autograd = false;

  // Removes the ops for whose index `keep` is false.
  template <typename Keep>
  void KeepOps(const Keep& keep) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < code.size(); ++i) {
      if (!keep(i)) continue;
      if (kept != i) {
        graph.ops[kept] = std::move(graph.ops[i]);
        code[kept] = std::move(code[i]);
      }
      ++kept;
    }
    graph.ops.resize(kept);
    code.erase(code.begin() + static_cast<std::ptrdiff_t>(kept), code.end());
  }
};

}  // namespace livepool
