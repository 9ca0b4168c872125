// The ops of a pass in order, with their values and storages: the part of the exec graph that liveness and
// the passes over the graph need. It knows nothing of torch; graph_capture/torch/program.h adds what is
// needed to run it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "livepool/base/units.h"
#include "livepool/pool/slot_table.h"

namespace livepool {

using ValueId = std::int32_t;
using StorageId = std::int32_t;

// Where a storage's bytes come from.
enum class StorageKind : std::uint8_t {
  kInput,         // of an argument of the call
  kState,         // of a parameter, a buffer or other tensor that the callable owns
  kConstant,      // bytes that were copied at capture
  kIntermediate,  // made by an op of the pass
};

// A tensor as the graph sees it.
struct Value {
  StorageId storage = 0;
  std::int32_t dtype = 0;  // c10::ScalarType
  Bytes element_size = 0;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;  // in elements
  std::int64_t storage_offset = 0;    // in elements
  bool on_host = false;               // in the host's memory, while the pass runs on another device

  // Same dtype, sizes, strides and offset: on one storage, the identical view.
  bool SameGeometry(const Value& other) const;
  std::int64_t numel() const;
  // Bytes of `numel` elements side by side.
  Bytes DenseBytes() const { return numel() * element_size; }
  // Every element has its own place, and together they are numel() places without gaps.
  bool NonOverlappingAndDense() const;
  friend bool operator==(const Value&, const Value&) = default;
};

struct Storage {
  StorageKind kind = StorageKind::kIntermediate;
  Bytes size = 0;
  friend bool operator==(const Storage&, const Storage&) = default;
};

struct Op {
  std::string name;              // "aten::add.Tensor"
  std::vector<ValueId> inputs;   // tensors in argument order, lists flattened
  std::vector<ValueId> outputs;  // tensors in result order, lists flattened
  std::vector<ValueId> writes;   // inputs that the op writes to, by its schema
  bool pointwise = false;        // tagged so, with a kernel of its own for the device, and not random
  bool effect = false;           // must run though nobody reads its outputs
  bool guard = false;            // gives a result that is no tensor, or sizes, that depend on data
  bool pure = false;             // its outputs depend on the bytes of its inputs and on nothing else
  friend bool operator==(const Op&, const Op&) = default;
};

struct OpGraph {
  std::vector<Op> ops;
  std::vector<Value> values;
  std::vector<Storage> storages;
  std::vector<ValueId> outputs;
  // Outputs have slots too, until the end of the pass: its caller copies or lends them. Otherwise they are upstream's.
  bool outputs_in_arena = false;

  const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id)]; }
  const Storage& storage(StorageId id) const { return storages[static_cast<std::size_t>(id)]; }

  // For each storage the last op that uses a value on it, -1 if none; ops.size() if it is an output's.
  std::vector<OpIndex> LastUseOfStorages() const;
  // For each value the last op that uses it (as input or output), -1 if none; ops.size() if it is an output.
  std::vector<OpIndex> LastUseOfValues() const;
  // For each storage whether an op of the pass writes to it after it was made.
  std::vector<bool> WrittenStorages() const;
  // Which ops matter: those with an effect, and those that a storage of an output depends on, by data or
  // by mutation. Conservative: a storage that is needed at the end is needed from its first write.
  std::vector<bool> LiveOps() const;
  friend bool operator==(const OpGraph&, const OpGraph&) = default;
};

}  // namespace livepool
