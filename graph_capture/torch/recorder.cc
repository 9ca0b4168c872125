#include "recorder.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/List.h>
#include <c10/core/StorageImpl.h>

#include <algorithm>
#include <exception>

#include "finish_program.h"
#include "livepool/base/error.h"
#include "livepool/pool/thread_state.h"
#include "op_facts.h"

namespace livepool {
namespace {

thread_local Recorder* current = nullptr;

bool IsLiftFresh(const c10::OperatorHandle& op) { return op.schema().name() == "aten::lift_fresh"; }

// TorchScript's interpreter shows its whole stack as arguments and results; an op's own are the last ones.
c10::ArrayRef<const c10::IValue> Last(c10::ArrayRef<const c10::IValue> stack, std::size_t n) {
  return stack.size() > n ? stack.slice(stack.size() - n) : stack;
}

// Calls that the recorder itself makes are neither recorded nor counted as the pass's.
class Unobserved {
 public:
  Unobserved() : sink_(std::exchange(CurrentThread().sink, nullptr)) {}
  ~Unobserved() { CurrentThread().sink = sink_; }

 private:
  at::DisableRecordFunctionGuard no_hook_;
  TraceSink* sink_;
};

}  // namespace

Recorder* Recorder::Current() { return current; }

Recorder::Recorder(DeviceId device, const std::vector<at::Tensor>& inputs, std::vector<StateTensor> state)
    : device_(device), stream_(CurrentStream(device)), known_(program_.graph), writer_(device, stream_) {
  program_.device = device;
  program_.modes = {ThreadModes::Current()};
  program_.settings = GlobalSettings::Current();
  // State first: an argument that is also a parameter is the parameter.
  for (StateTensor& each : state) {
    const std::optional<ValueId> known = known_.Find(each.tensor);
    each.value = known ? *known : known_.Add(each.tensor, StorageKind::kState);
    each.data = each.tensor.storage().data();
    each.device = each.tensor.device();
    program_.bound.emplace_back(each.value, each.tensor);
    callers_.insert(each.tensor.unsafeGetTensorImpl());
  }
  program_.state = std::move(state);
  for (const at::Tensor& input : inputs) {
    const std::optional<ValueId> known = known_.Find(input);
    program_.inputs.push_back(known ? *known : known_.Add(input, StorageKind::kInput));
    program_.input_devices.push_back(input.device());
    program_.input_bits.push_back(LazyBits::Of(input));
    callers_.insert(input.unsafeGetTensorImpl());
  }
}

std::vector<at::Tensor> Recorder::Run(const std::function<std::vector<at::Tensor>()>& fn) {
  if (current != nullptr) throw CaptureRefused("another capture is under way on this thread");
  if (!at::isRecordFunctionEnabled()) throw CaptureRefused("RecordFunction observers are disabled on this thread");
  if (const auto reason = RefusedThreadState()) throw CaptureRefused(*reason);
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(&OnBegin, &OnEnd)
                                                     .needsInputs(true)
                                                     .needsOutputs(true)
                                                     .scopes({at::RecordScope::FUNCTION}));
  current = this;
  struct Guard {
    at::CallbackHandle handle;
    bool autocast_cache;
    ~Guard() {
      current = nullptr;
      at::autocast::set_autocast_cache_enabled(autocast_cache);
      at::removeCallback(handle);
    }
  } const guard{handle, at::autocast::is_autocast_cache_enabled()};
  at::autocast::set_autocast_cache_enabled(false);  // as in a replay: a cached weight would outlive the pass
  const RecordingScope recording(writer_);
  return fn();
}

void Recorder::Refuse(const std::string& reason) {
  if (refusal_.empty()) refusal_ = reason;
}

bool Recorder::RefuseHostRead(const std::string& reason) {
  // What the kernel of an op reads, it reads again in each replay.
  if (!frames_.empty() && !frames_.back().composite) return false;
  Refuse(reason);
  return true;
}

std::unique_ptr<at::ObserverContext> Recorder::OnBegin(const at::RecordFunction& fn) {
  if (current == nullptr) return nullptr;
  try {
    current->Begin(fn);
  } catch (const std::exception& error) {
    current->Refuse(error.what());
  }
  return nullptr;
}

void Recorder::OnEnd(const at::RecordFunction& fn, at::ObserverContext*) {
  if (current == nullptr) return;
  try {
    current->End(fn);
  } catch (const std::exception& error) {
    current->Refuse(error.what());
  }
}

void Recorder::Begin(const at::RecordFunction& fn) {
  saw_event_ = true;
  if (!frames_.empty() && !frames_.back().composite) {
    ++inside_op_;
    return;
  }
  const std::optional<c10::OperatorName> name = fn.operator_name();
  if (!name) return Refuse(std::string("an event without operator: ") + fn.name());
  const std::optional<c10::OperatorHandle> op = c10::Dispatcher::singleton().findSchema(*name);
  if (!op) return Refuse("no schema for operator " + name->name);

  if (const auto reason = RefusedThreadState()) Refuse(*reason + " (at " + OpName(*op) + ")");
  if (const auto setting = GlobalSettings::Current().Differs(program_.settings)) {
    Refuse("the pass changes " + *setting + ", before " + OpName(*op));
  }
  if (CurrentStream(device_) != stream_) Refuse("the pass changes the stream, before " + OpName(*op));

  Frame frame{.op = *op, .composite = IsLookedThrough(*op, device_), .instruction = {.op = *op}};
  frame.instruction.modes = NoteModes();
  if (!IsLiftFresh(*op)) TakeArguments(frame, Last(fn.inputs(), op->schema().arguments().size()));
  frame.code_mark = program_.code.size();
  frames_.push_back(std::move(frame));
  if (!frames_.back().composite) writer_.BeginOp();
}

void Recorder::End(const at::RecordFunction& fn) {
  if (inside_op_ > 0) {
    --inside_op_;
    return;
  }
  if (frames_.empty()) return;
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  if (!frame.composite) writer_.EndOp();
  if (std::uncaught_exceptions() > 0) {
    Refuse(OpName(frame.op) + " ended by an exception; a graph would not repeat what the program does then");
  }
  if (!refusal_.empty()) return;

  const c10::ArrayRef<const c10::IValue> results = Last(
      c10::ArrayRef<const c10::IValue>(fn.outputs().data(), fn.outputs().size()), frame.op.schema().returns().size());
  // A composite whose result no recorded op has made is one op after all.
  if (frame.composite && !frame.hides_tensors) {
    const auto look = [&](const at::Tensor& result) {
      if (result.defined() && result.has_storage() && !known_.FindStorage(result)) frame.hides_tensors = true;
    };
    for (const c10::IValue& result : results) {
      if (result.isTensor()) look(result.toTensor());
      if (!result.isTensorList()) continue;
      for (const at::Tensor& each : result.toTensorVector()) look(each);
    }
    if (!frame.hides_tensors) return;
  }
  if (frame.composite) {
    program_.code.resize(frame.code_mark, Instruction{.op = frame.op});
    program_.graph.ops.resize(frame.code_mark);
  }
  // torch.tensor(array) copies, and what it has copied is as frozen as torch.tensor(list).
  const bool copies_host = frame.op.schema().name() == "aten::_to_copy" && !frame.inputs.empty() &&
                           host_memory_.contains(program_.graph.value(frame.inputs[0]).storage);
  if (IsLiftFresh(frame.op) || copies_host) return FreezeHostWritten(results[0].toTensor());
  TakeResults(frame, results);
  Emit(std::move(frame));
}

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
      if (taken.values[0] == Argument::kNone) taken = {.constant = argument};
      else taken.kind = Argument::Kind::kValue;
    } else if (argument.isTensorList()) {
      taken.kind = Argument::Kind::kValueList;
      for (const at::Tensor& each : argument.toTensorVector()) take(each);
    } else if (argument.isOptionalTensorList()) {
      taken.kind = Argument::Kind::kOptionalValueList;
      for (const std::optional<at::Tensor>& each : argument.toOptionalTensorVector()) take(each.value_or(at::Tensor()));
    } else if (argument.isList() || argument.isTuple() || argument.isGenericDict() || argument.isObject()) {
      std::vector<at::Tensor> inside;
      c10::IValue::HashAliasedIValues seen;
      argument.getSubValues(seen);
      for (const c10::IValue& each : seen) {
        if (each.isTensor()) Refuse("argument " + std::to_string(i) + " of " + OpName(frame.op) + " holds tensors in a container");
      }
      taken.constant = argument;
    } else if (argument.isStorage() || argument.isStream() || argument.isPyObject()) {
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
      "whose bytes no recorded op has written (from_numpy; or empty and filled by numpy, data_ptr or a foreign kernel?)";
}

void Recorder::TakeResults(Frame& frame, c10::ArrayRef<const c10::IValue> results) {
  const std::size_t returns = frame.op.schema().returns().size();
  if (results.size() != returns) {
    return Refuse(OpName(frame.op) + " gave " + std::to_string(results.size()) + " results instead of " + std::to_string(returns));
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

void Recorder::Emit(Frame&& frame) {
  Op op{.name = OpName(frame.op), .inputs = std::move(frame.inputs), .writes = std::move(frame.writes)};
  for (const Result& result : frame.instruction.results) {
    if (result.kind == Result::Kind::kExpected) continue;
    for (const ValueId value : result.values) {
      if (value != Argument::kNone) op.outputs.push_back(value);
    }
  }
  // resize_ writes nothing: what it adds holds what was there before.
  const bool resize = frame.grows && frame.op.schema().name().starts_with("aten::resize");
  for (const ValueId value : op.writes) {
    const StorageId storage = program_.graph.value(value).storage;
    if (resize) unwritten_.insert(storage);
    else unwritten_.erase(storage);
  }
  op.pointwise = IsPointwise(frame.op, device_);
  const bool by_mask = IsIndexing(frame.op) && std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) {
    const auto dtype = static_cast<at::ScalarType>(program_.graph.value(id).dtype);
    return id != op.inputs[0] && (dtype == at::kBool || dtype == at::kByte);
  });
  op.effect = HasEffect(frame.op) || by_mask;
  frame.instruction.guard = IsGuard(frame.op) || by_mask;
  program_.random = program_.random || IsRandom(frame.op);
  program_.graph.ops.push_back(std::move(op));
  program_.code.push_back(std::move(frame.instruction));
}

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

Program Recorder::Finish(const std::vector<at::Tensor>& outputs) {
  const auto check = [&] {
    if (!refusal_.empty()) throw CaptureRefused(refusal_);
  };
  check();
  for (const at::Tensor& output : outputs) {
    if (const auto reason = RefusedKind(output)) throw CaptureRefused("an output is " + *reason);
    std::optional<ValueId> value = known_.Find(output);
    const std::optional<StorageId> storage = known_.FindStorage(output);
    if (!value && storage) {
      EmitAliasOf(*storage, output);
      check();
      value = known_.Find(output);
    }
    if (!value) {
      throw CaptureRefused("an output, " + DescribeForPeople(output) + ", was not made by a recorded op" +
                           (saw_event_ ? "" : "; no op was seen at all: observers are disabled"));
    }
    if (unwritten_.contains(*storage) && program_.graph.storage(*storage).size > 0) {
      throw CaptureRefused("an output, " + DescribeForPeople(output) + ", has bytes that no recorded op has written");
    }
    program_.graph.outputs.push_back(*value);
  }
  return FinishProgram(std::move(program_));
}

std::vector<AllocationIndex> Recorder::AllocationsOf(const std::vector<at::Tensor>& outputs) const {
  std::vector<AllocationIndex> allocations;
  for (const at::Tensor& output : outputs) {
    const AllocationIndex allocation = writer_.LiveAt(output.storage().data());
    if (allocation >= 0) allocations.push_back(allocation);
  }
  return allocations;
}

}  // namespace livepool
