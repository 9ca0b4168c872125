#include "executor.h"

#include <ATen/core/List.h>
#include <ATen/core/stack.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>

#include "livepool/base/error.h"

namespace livepool {
namespace {

using Values = std::vector<at::Tensor>;

at::Tensor& At(Values& values, ValueId id) { return values[static_cast<std::size_t>(id)]; }

void Push(torch::jit::Stack& stack, const Argument& argument, Values& values) {
  switch (argument.kind) {
    case Argument::Kind::kConstant:
      stack.push_back(argument.constant);
      break;
    case Argument::Kind::kValue:
      stack.emplace_back(At(values, argument.values[0]));
      break;
    case Argument::Kind::kValueList: {
      c10::List<at::Tensor> list;
      list.reserve(argument.values.size());
      for (const ValueId id : argument.values) list.push_back(id < 0 ? at::Tensor() : At(values, id));
      stack.emplace_back(std::move(list));
      break;
    }
    case Argument::Kind::kOptionalValueList: {
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(argument.values.size());
      for (const ValueId id : argument.values) {
        list.push_back(id < 0 ? std::nullopt : std::optional<at::Tensor>(At(values, id)));
      }
      stack.emplace_back(std::move(list));
      break;
    }
  }
}

// Equal as bytes: NaN equals NaN, and -0.0 is not 0.0.
bool SameResult(const c10::IValue& a, const c10::IValue& b) {
  if (a.tagKind() != b.tagKind()) return false;
  const auto same = [](const auto& x, const auto& y) { return std::memcmp(&x, &y, sizeof x) == 0; };
  if (a.isDouble()) return same(a.toDouble(), b.toDouble());
  if (a.isComplexDouble()) return same(a.toComplexDouble(), b.toComplexDouble());
  if (!a.isDoubleList()) return a == b;
  const std::vector<double> x = a.toDoubleVector();
  const std::vector<double> y = b.toDoubleVector();
  return std::equal(x.begin(), x.end(), y.begin(), y.end(), same);
}

[[noreturn]] void FailGuard(const Op& op, const std::string& captured, const std::string& now) {
  throw GuardFailed(op.name + " gave " + captured + " at capture and " + now +
                    " now: the program would take another path; capture it for this case too");
}

std::string ToText(const c10::IValue& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

void TakeTensor(const Program& program, OpIndex op, ValueId id, at::Tensor tensor, Values& values) {
  const Op& node = program.graph.ops[static_cast<std::size_t>(op)];
  if ((id >= 0) != tensor.defined()) FailGuard(node, id >= 0 ? "a tensor" : "none", id >= 0 ? "none" : "a tensor");
  if (id < 0) return;
  const Value& expected = program.graph.value(id);
  // Of an op that depends on data nothing is known; of the others the captured arguments decide.
  if (node.guard &&
      (static_cast<std::int32_t>(tensor.scalar_type()) != expected.dtype ||
       tensor.strides() != at::IntArrayRef(expected.strides) || tensor.storage_offset() != expected.storage_offset)) {
    FailGuard(node, "another dtype or layout", "this one");
  }
  if (tensor.sizes() != at::IntArrayRef(expected.sizes)) {
    std::ostringstream captured, now;
    captured << "sizes " << at::IntArrayRef(expected.sizes);
    now << tensor.sizes();
    FailGuard(node, captured.str(), now.str());
  }
  At(values, id) = std::move(tensor);
}

void TakeResults(const Program& program, OpIndex op, torch::jit::Stack& stack, Values& values) {
  const Instruction& instruction = program.code[static_cast<std::size_t>(op)];
  for (std::size_t i = 0; i < instruction.results.size(); ++i) {
    const Result& result = instruction.results[i];
    switch (result.kind) {
      case Result::Kind::kValue:
        TakeTensor(program, op, result.values[0], std::move(stack[i]).toTensor(), values);
        break;
      case Result::Kind::kValueList: {
        const std::vector<at::Tensor> list = stack[i].toTensorVector();
        if (list.size() != result.values.size()) {
          FailGuard(program.graph.ops[static_cast<std::size_t>(op)], std::to_string(result.values.size()) + " tensors",
                    std::to_string(list.size()));
        }
        for (std::size_t k = 0; k < list.size(); ++k) TakeTensor(program, op, result.values[k], list[k], values);
        break;
      }
      case Result::Kind::kExpected:
        if (!SameResult(result.expected, stack[i])) {
          FailGuard(program.graph.ops[static_cast<std::size_t>(op)], ToText(result.expected), ToText(stack[i]));
        }
        break;
    }
  }
}

void BumpVersion(const at::Tensor& tensor) {
  if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
}

}  // namespace

void MarkWritten(const Program& program, const std::vector<at::Tensor>& inputs) {
  if (!program.skips_autograd) return;
  for (const std::size_t i : program.written_inputs) BumpVersion(inputs[i]);
  for (const at::Tensor& tensor : program.written_state) BumpVersion(tensor);
}

ProgramRun::ProgramRun(const Program& program, std::vector<at::Tensor> inputs, RunObserver& observer)
    : program_(program),
      observer_(observer),
      modes_(program.modes, program.skips_autograd),
      values_(program.graph.values.size()) {
  for (const auto& [id, tensor] : program.bound) At(values_, id) = tensor;
  for (std::size_t i = 0; i < inputs.size(); ++i) At(values_, program.inputs[i]) = std::move(inputs[i]);
}

void ProgramRun::Ops(std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) {
    const auto op = static_cast<OpIndex>(i);
    modes_.To(program_.code[i].modes);
    observer_.BeforeOp(op, values_);
    stack_.clear();
    for (const Argument& argument : program_.code[i].arguments) Push(stack_, argument, values_);
    program_.code[i].op.callBoxed(stack_);
    TakeResults(program_, op, stack_, values_);
    stack_.clear();
    observer_.AfterOp(op, values_);
    for (const ValueId id : program_.drops[i]) At(values_, id).reset();
  }
}

std::vector<at::Tensor> ProgramRun::Outputs() const {
  std::vector<at::Tensor> outputs;
  outputs.reserve(program_.graph.outputs.size());
  for (const ValueId id : program_.graph.outputs) outputs.push_back(value(id));
  return outputs;
}

std::vector<at::Tensor> RunProgram(const Program& program, std::vector<at::Tensor> inputs, RunObserver& observer) {
  MarkWritten(program, inputs);
  ProgramRun run(program, std::move(inputs), observer);
  run.Ops(0, program.code.size());
  return run.Outputs();
}

}  // namespace livepool
