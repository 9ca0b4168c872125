// Recorder, continued: what happens beside the dispatcher - bytes of the host, numbers, aliases.
#include "op_facts.h"
#include "recorder.h"
#include "unobserved.h"

namespace livepool {

ValueId Recorder::AddConstant(const at::Tensor& tensor) {
  const ValueId value = known_.Add(tensor, StorageKind::kConstant);
  program_.bound.emplace_back(value, tensor);
  return value;
}

void Recorder::FreezeHostWritten(const at::Tensor& tensor) {
  // Memory that was not allocated for this tensor is shared with the host (from_numpy), which may write to it at any
  // time. No recorded op makes it, so it may only be copied.
  if (tensor.storage().allocator() == nullptr && tensor.storage().nbytes() > 0) {
    const StorageId storage = program_.graph.value(known_.Add(tensor, StorageKind::kIntermediate)).storage;
    host_memory_.insert(storage);
    unwritten_.insert(storage);
    return;
  }
  at::Tensor bytes;
  {
    const Unobserved unobserved;
    bytes = tensor.clone();
  }
  // Each pass gets its own copy, as eager makes a new tensor each time, which the pass may write to.
  static const c10::OperatorHandle clone = c10::Dispatcher::singleton().findSchemaOrThrow("aten::clone", "");
  Frame frame{.op = clone, .instruction = {.op = clone}};
  const ValueId constant = AddConstant(bytes);
  frame.inputs = {constant};
  frame.instruction.arguments = {{.kind = Argument::Kind::kValue, .values = {constant}}, {.constant = c10::IValue()}};
  frame.instruction.results = {{.values = {known_.AddAnew(tensor)}}};
  Emit(std::move(frame));
}

void Recorder::EmitAliasOf(StorageId storage, const at::Tensor& tensor) {
  const std::optional<ValueId> base = known_.NewestOn(storage, tensor.scalar_type());
  if (!base || tensor.is_conj() || tensor.is_neg()) {
    return Refuse("a tensor " + DescribeForPeople(tensor) + " was made from another one outside the dispatcher");
  }
  static const c10::OperatorHandle as_strided = c10::Dispatcher::singleton().findSchemaOrThrow("aten::as_strided", "");
  Frame frame{.op = as_strided, .instruction = {.op = as_strided}};
  frame.inputs = {*base};
  frame.instruction.arguments = {{.kind = Argument::Kind::kValue, .values = {*base}},
                                 {.constant = tensor.sizes()},
                                 {.constant = tensor.strides()},
                                 {.constant = tensor.storage_offset()}};
  frame.instruction.results = {{.values = {known_.Add(tensor, StorageKind::kIntermediate)}}};
  Emit(std::move(frame));
}

}  // namespace livepool
