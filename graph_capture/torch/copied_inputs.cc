#include "copied_inputs.h"

#include <algorithm>
#include <unordered_set>

namespace livepool {
namespace {

// Places between the first and the last element of `value`, both counted.
std::int64_t Span(const Value& value) {
  if (value.numel() == 0) return 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < value.sizes.size(); ++i) last += (value.sizes[i] - 1) * value.strides[i];
  return last + 1;
}

class InputCopier {
 public:
  explicit InputCopier(Program& program) : program_(program), graph_(program.graph) {}

  void Run() {
    FindUse();
    std::unordered_set<ValueId> seen;
    const std::vector<ValueId> inputs = program_.inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const auto storage = static_cast<std::size_t>(graph_.value(inputs[i]).storage);
      if (!used_[storage] || !seen.insert(inputs[i]).second) continue;
      if (graph_.storages[storage].kind != StorageKind::kInput || graph_.value(inputs[i]).on_host) continue;
      if (graph_.value(inputs[i]).numel() == 0) continue;
      if (CanCopy(i))
        Copy(i);
      else
        program_.fixed_inputs.push_back(i);
    }
    Prepend();
  }

 private:
  void FindUse() {
    const std::size_t count = graph_.storages.size();
    used_.assign(count, false);
    strided_.assign(count, false);
    kept_ = graph_.WrittenStorages();
    const auto storage = [&](ValueId id) { return static_cast<std::size_t>(graph_.value(id).storage); };
    for (const Op& op : graph_.ops) {
      for (const ValueId id : op.inputs) {
        used_[storage(id)] = true;
        if (op.name.starts_with("aten::as_strided")) strided_[storage(id)] = true;
      }
    }
    for (const ValueId id : graph_.outputs) kept_[storage(id)] = true;
    const std::unordered_set<ValueId> distinct(program_.inputs.begin(), program_.inputs.end());
    std::unordered_set<std::size_t> one;
    for (const ValueId id : distinct) {
      if (!one.insert(storage(id)).second) kept_[storage(id)] = true;
    }
  }

  bool CanCopy(std::size_t input) const {
    const Value& value = graph_.value(program_.inputs[input]);
    const auto storage = static_cast<std::size_t>(value.storage);
    const TensorBits& bits = program_.input_bits[input];
    // as_strided counts from the start of the storage, which a copy does not have.
    return !kept_[storage] && !bits.conj && !bits.neg && (value.storage_offset == 0 || !strided_[storage]);
  }

  // The argument gets a new value; what was its value lives on the copy, with all views of it.
  void Copy(std::size_t input) {
    const ValueId original = program_.inputs[input];
    const Value argument = graph_.value(original);
    const std::int64_t span = Span(argument);
    const auto copy_storage = static_cast<StorageId>(graph_.storages.size());
    graph_.storages.push_back({.kind = StorageKind::kIntermediate, .size = span * argument.element_size});
    for (Value& value : graph_.values) {
      if (value.storage != argument.storage) continue;
      value.storage = copy_storage;
      value.storage_offset -= argument.storage_offset;
    }
    const ValueId given = Add(argument);
    std::replace(program_.inputs.begin(), program_.inputs.end(), original, given);
    program_.copied_inputs.push_back({.input = input, .copy = original, .span = span});
    if (argument.NonOverlappingAndDense() && argument.storage_offset == 0) {
      Emit("aten::clone", given, original, {c10::IValue()});  // keeps the strides
      return;
    }
    Value flat = argument;
    flat.sizes = {span};
    flat.strides = {1};
    const ValueId flat_given = Add(flat);
    flat.storage = copy_storage;
    flat.storage_offset = 0;
    const ValueId flat_copy = Add(flat);
    EmitAsStrided(given, flat_given);
    Emit("aten::clone", flat_given, flat_copy, {c10::IValue()});
    EmitAsStrided(flat_copy, original);
  }

  ValueId Add(Value value) {
    graph_.values.push_back(std::move(value));
    return static_cast<ValueId>(graph_.values.size() - 1);
  }

  void EmitAsStrided(ValueId from, ValueId to) {
    const Value& value = graph_.value(to);
    Emit("aten::as_strided", from, to, {value.sizes, value.strides, value.storage_offset});
  }

  void Emit(const char* name, ValueId input, ValueId output, const std::vector<c10::IValue>& constants) {
    const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
    ops_.push_back({.name = name, .inputs = {input}, .outputs = {output}, .pure = true});
    Instruction& instruction = code_.emplace_back(Instruction{.op = op});
    instruction.arguments.push_back({.kind = Argument::Kind::kValue, .values = {input}});
    for (const c10::IValue& constant : constants) instruction.arguments.push_back({.constant = constant});
    instruction.results.push_back({.values = {output}});
  }

  void Prepend() {
    program_.copying_ops = ops_.size();
    graph_.ops.insert(graph_.ops.begin(), std::make_move_iterator(ops_.begin()), std::make_move_iterator(ops_.end()));
    program_.code.insert(program_.code.begin(), std::make_move_iterator(code_.begin()),
                         std::make_move_iterator(code_.end()));
  }

  Program& program_;
  OpGraph& graph_;
  std::vector<bool> used_;     // by storage: an op reads it
  std::vector<bool> strided_;  // likewise, by as_strided
  std::vector<bool> kept_;     // written, returned, or of several arguments
  std::vector<Op> ops_;
  std::vector<Instruction> code_;
};

}  // namespace

void CopyInputs(Program& program) { InputCopier(program).Run(); }

}  // namespace livepool
