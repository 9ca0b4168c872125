#include "recorder.h"

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <exception>
#include <sstream>

#include "livepool/base/error.h"
#include "livepool/pool/thread_state.h"
#include "op_facts.h"

namespace livepool {
namespace {

thread_local Recorder* current = nullptr;

// "Float[2, 8]"; with the strides where they are not those of a contiguous tensor.
std::string GeometryText(const at::Tensor& tensor) {
  if (!tensor.defined()) return "none";
  if (const auto reason = RefusedKind(tensor)) return *reason;
  std::ostringstream text;
  text << tensor.scalar_type() << tensor.sizes();
  if (!tensor.is_contiguous()) text << "/" << tensor.strides();
  return text.str();
}

bool IsLiftFresh(const c10::OperatorHandle& op) { return op.schema().name() == "aten::lift_fresh"; }

// TorchScript's interpreter shows its whole stack as arguments and results; an op's own are the last ones.
c10::ArrayRef<const c10::IValue> Last(c10::ArrayRef<const c10::IValue> stack, std::size_t n) {
  return stack.size() > n ? stack.slice(stack.size() - n) : stack;
}

}  // namespace

Recorder* Recorder::Current() { return current; }

Recorder::Recorder(DeviceId device, const std::vector<at::Tensor>& inputs, std::vector<StateTensor> state)
    : device_(device), stream_(CurrentStream(device)), known_(program_.graph, device), writer_(device, stream_) {
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
    program_.input_bits.push_back(TensorBits::Of(input));
    callers_.insert(input.unsafeGetTensorImpl());
  }
}

std::vector<at::Tensor> Recorder::Run(const std::function<std::vector<at::Tensor>()>& fn, ArenaPool& pool,
                                      const SavedPlan* known) {
  if (const auto reason = WhyNotNow()) throw CaptureRefused(*reason);
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(&OnBegin, &OnEnd)
                                                     .needsInputs(true)
                                                     .needsOutputs(true)
                                                     .scopes({at::RecordScope::FUNCTION}));
  current = this;
  struct Guard {
    at::CallbackHandle handle;
    bool autocast_cache;
    ~Guard() {
      current->known_run_ = nullptr;
      current = nullptr;
      at::autocast::set_autocast_cache_enabled(autocast_cache);
      at::removeCallback(handle);
    }
  } const guard{handle, at::autocast::is_autocast_cache_enabled()};
  at::autocast::set_autocast_cache_enabled(false);  // as in a replay: a cached weight would outlive the pass
  const RecordingScope recording(writer_);
  std::unique_ptr<KnownRun> run;
  if (known != nullptr) run = KnownRun::Begin(pool, {.run = known->recorded, .ops = &known->ops}, writer_);
  known_run_ = run.get();
  return fn();
}

std::optional<std::string> Recorder::WhyNotNow() {
  if (current != nullptr) return "another capture is under way on this thread";
  if (!at::isRecordFunctionEnabled()) return "RecordFunction observers are disabled on this thread";
  return RefusedThreadState();
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
  if (!name) {
    return Refuse(std::string("the pass runs '") + fn.name() +
                  "', which is no operator (torch.compile, autograd.Function and checkpoint do such things)");
  }
  const std::optional<c10::OperatorHandle> op = c10::Dispatcher::singleton().findSchema(*name);
  if (!op) return Refuse("no schema for operator " + name->name);

  if (IsCollective(*op)) return Refuse(OpName(*op) + " is a collective, which livepool does not support yet");
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
  if (frames_.back().composite) return;
  const OpIndex index = writer_.BeginOp();
  if (known_run_ != nullptr) known_run_->BeginOp(index, OpName(*op));
}

void Recorder::EndOp(const Frame& frame, const at::RecordFunction& fn) {
  writer_.EndOp();
  std::string text = OpName(frame.op) + " ->";
  const c10::ArrayRef<const c10::IValue> stack(fn.outputs().data(), fn.outputs().size());
  for (const c10::IValue& result : Last(stack, frame.op.schema().returns().size())) {
    if (result.isTensor()) text += " " + GeometryText(result.toTensor());
    if (!result.isTensorList()) continue;
    for (const at::Tensor& each : result.toTensorVector()) text += " " + GeometryText(each);
  }
  ops_.push_back(std::move(text));
  if (known_run_ != nullptr) known_run_->EndOp(static_cast<OpIndex>(ops_.size() - 1), ops_.back());
}

void Recorder::End(const at::RecordFunction& fn) {
  if (inside_op_ > 0) {
    --inside_op_;
    return;
  }
  if (frames_.empty()) return;
  Frame frame = std::move(frames_.back());
  frames_.pop_back();
  if (!frame.composite) EndOp(frame, fn);
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
    if (resize)
      unwritten_.insert(storage);
    else
      unwritten_.erase(storage);
  }
  op.pointwise = IsPointwise(frame.op, device_);
  const bool by_mask = IsIndexing(frame.op) && std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueId id) {
                         const auto dtype = static_cast<at::ScalarType>(program_.graph.value(id).dtype);
                         return id != op.inputs[0] && (dtype == at::kBool || dtype == at::kByte);
                       });
  op.guard = IsGuard(frame.op) || by_mask;
  op.effect = HasEffect(frame.op) || op.guard;
  op.pure = IsPure(frame.op) && frame.instruction.reads_unwritten.empty();
  program_.random = program_.random || IsRandom(frame.op);
  program_.graph.ops.push_back(std::move(op));
  program_.code.push_back(std::move(frame.instruction));
}

Program Recorder::Finish(const std::vector<at::Tensor>& outputs, const FinishOptions& options) {
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
  return FinishProgram(std::move(program_), options);
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
