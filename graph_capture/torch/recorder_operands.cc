// Recorder, continued: the arguments and the results of an op.
#include <ATen/core/List.h>

#include <algorithm>

#include "op_facts.h"
#include "recorder.h"
#include "unobserved.h"

namespace livepool {

std::size_t Recorder::NoteModes() {
  const ThreadModes modes = ThreadModes::Current();
  const auto it = std::find(program_.modes.begin(), program_.modes.end(), modes);
  if (it != program_.modes.end()) return static_cast<std::size_t>(it - program_.modes.begin());
  program_.modes.push_back(modes);
  return program_.modes.size() - 1;
}

void Recorder::NoteGenerator(const at::Generator& generator) {
  if (IsDefaultGenerator(generator) || generators_.Contains(generator)) return;
  const Unobserved unobserved;
  generators_.Add(generator);
  program_.generators.push_back(generator);
}

void Recorder::TakeArguments(Frame& frame, c10::ArrayRef<const c10::IValue> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& argument = arguments[i];
    Argument& taken = frame.instruction.arguments.emplace_back();
    const auto take = [&](const at::Tensor& tensor) {
      const ValueId value = tensor.defined() ? Use(frame, tensor, i).value_or(Argument::kNone) : Argument::kNone;
      taken.values.push_back(value);
      if (value == Argument::kNone) return;
      frame.inputs.push_back(value);
      if (Writes(frame.op, i)) frame.writes.push_back(value);
    };
    if (argument.isTensor()) {
      take(argument.toTensor());
      if (taken.values[0] == Argument::kNone)
        taken = {.constant = argument};
      else
        taken.kind = Argument::Kind::kValue;
    } else if (argument.isTensorList()) {
      taken.kind = Argument::Kind::kValueList;
      for (const at::Tensor& each : argument.toTensorVector()) take(each);
    } else if (argument.isOptionalTensorList()) {
      taken.kind = Argument::Kind::kOptionalValueList;
      for (const std::optional<at::Tensor>& each : argument.toOptionalTensorVector()) take(each.value_or(at::Tensor()));
    } else if (argument.isList() || argument.isTuple() || argument.isGenericDict()) {
      c10::IValue::HashAliasedIValues seen;
      argument.getSubValues(seen);
      for (const c10::IValue& each : seen) {
        if (each.isTensor())
          Refuse("argument " + std::to_string(i) + " of " + OpName(frame.op) + " holds tensors in a container");
      }
      taken.constant = argument;
    } else if (argument.isStorage() || argument.isStream() || argument.isPyObject() || argument.isObject() ||
               argument.isCapsule()) {
      Refuse("argument " + std::to_string(i) + " of " + OpName(frame.op) + " is a " + argument.tagKind() +
             ", which livepool cannot follow");
    } else {
      if (argument.isGenerator() && argument.toGenerator().defined()) NoteGenerator(argument.toGenerator());
      taken.constant = argument;
    }
  }
  for (const std::size_t i : HiddenWrites(frame.op, arguments)) {
    const std::vector<ValueId>& values = frame.instruction.arguments[i].values;
    if (!values.empty()) frame.writes.push_back(values[0]);
  }
}

std::optional<ValueId> Recorder::Use(Frame& frame, const at::Tensor& tensor, std::size_t argument) {
  if (const auto reason = RefusedKind(tensor)) {
    Refuse("argument " + std::to_string(argument) + " of " + OpName(frame.op) + " is " + *reason);
    return std::nullopt;
  }
  std::optional<ValueId> value = known_.Find(tensor);
  if (!value && tensor.unsafeGetTensorImpl()->is_wrapped_number()) value = AddConstant(tensor);
  if (!value) {
    if (const std::optional<StorageId> storage = known_.FindStorage(tensor)) {
      EmitAliasOf(*storage, tensor);
      value = known_.Find(tensor);
    }
  }
  if (!value) {
    Hide(OpName(frame.op) + " reads a tensor " + DescribeForPeople(tensor) +
         " that is neither an argument, nor state of the callable, nor made in the pass (a hidden input)");
    return std::nullopt;
  }
  NoteReadOf(frame, *value, argument);
  return value;
}

void Recorder::Hide(const std::string& what) {
  // A tensor that a composite made without the dispatcher: the innermost one that is open hides it. The op
  // whose arguments are being taken is not on the stack yet.
  if (frames_.empty()) return Refuse(what);
  frames_.back().hides_tensors = true;
}

// Note [Bytes written by the host]
// torch.tensor(...), new_tensor and indexing with lists make an empty tensor, fill it without the dispatcher,
// and pass it through aten::lift_fresh, perhaps after a copy to another device or dtype. So a read of bytes
// that no op wrote is only noted; lift_fresh turns its argument into a constant, which cuts the chain; and if
// an op that survives dead-op removal still reads such bytes, the capture is refused. That is also what a
// kernel launched outside the dispatcher, or numpy, looks like.
void Recorder::NoteReadOf(Frame& frame, ValueId value, std::size_t argument) {
  const StorageId storage = program_.graph.value(value).storage;
  if (!unwritten_.contains(storage)) return;
  if (Writes(frame.op, argument)) return;
  if (IsViewOf(frame.op, argument) || ReadsMetadataOnly(frame.op)) return;
  if (program_.graph.storage(storage).size == 0) return;
  frame.instruction.reads_unwritten = OpName(frame.op) + " reads a tensor " +
                                      "whose bytes no recorded op has written (from_numpy; or empty and filled by "
                                      "numpy, data_ptr or a foreign kernel?)";
}

void Recorder::TakeResults(Frame& frame, c10::ArrayRef<const c10::IValue> results) {
  const std::size_t returns = frame.op.schema().returns().size();
  if (results.size() != returns) {
    return Refuse(OpName(frame.op) + " gave " + std::to_string(results.size()) + " results instead of " +
                  std::to_string(returns));
  }
  for (const c10::IValue& result : results) {
    Result& taken = frame.instruction.results.emplace_back();
    if (result.isTensor()) {
      taken.values.push_back(result.toTensor().defined() ? Define(frame, result.toTensor()) : Argument::kNone);
    } else if (result.isTensorList()) {
      taken.kind = Result::Kind::kValueList;
      for (const at::Tensor& each : result.toTensorVector()) taken.values.push_back(Define(frame, each));
    } else if (result.isNone() || result.isScalar() || result.isIntList() || result.isDoubleList() ||
               result.isBoolList() || result.isString() || result.isSymInt()) {
      taken.kind = Result::Kind::kExpected;
      taken.expected = result;
    } else {
      Refuse(OpName(frame.op) + " returns a " + result.tagKind() + ", which livepool cannot replay");
    }
  }
}

ValueId Recorder::Define(Frame& frame, const at::Tensor& tensor) {
  if (const auto reason = RefusedKind(tensor)) {
    Refuse("the result of " + OpName(frame.op) + " is " + *reason);
    return 0;
  }
  const bool new_storage = !known_.FindStorage(tensor);
  // The same impl with the same geometry is the same value (in-place ops, out= variants).
  const std::optional<ValueId> known = known_.Find(tensor);
  if (!known && callers_.contains(tensor.unsafeGetTensorImpl())) {
    Refuse(OpName(frame.op) + " changes the shape or the storage of an argument or a state tensor");
  }
  const ValueId value = known ? *known : known_.Add(tensor, StorageKind::kIntermediate);
  Storage& storage = program_.graph.storages[static_cast<std::size_t>(program_.graph.value(value).storage)];
  const auto size = static_cast<Bytes>(tensor.storage().nbytes());
  frame.grows = frame.grows || size > storage.size;
  storage.size = std::max(storage.size, size);
  if (new_storage && MakesUnwritten(frame.op)) unwritten_.insert(program_.graph.value(value).storage);
  return value;
}

}  // namespace livepool
