#include "livepool/capture/exec_graph.h"

#include <ATen/autocast_mode.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <chrono>
#include <initializer_list>
#include <map>
#include <mutex>

#include "calibration.h"
#include "check.h"
#include "device_context.h"
#include "executor.h"
#include "livepool/base/env.h"
#include "livepool/base/error.h"
#include "livepool/graph/packing.h"
#include "livepool/plan/planner.h"
#include "livepool/plan/validate.h"
#include "livepool/pool/pass.h"
#include "livepool/torch/cuda_pass.h"
#include "livepool/torch/install.h"
#include "op_facts.h"
#include "recorder.h"
#include "signature.h"
#include "tensor_bytes.h"

namespace livepool {
namespace {

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Moves the pass's cursor along the ops of a replay.
class Server final : public RunObserver {
 public:
  Server(Pass& pass, const std::vector<ValueId>& in_place_input) : pass_(pass), in_place_input_(in_place_input) {}

  void BeforeOp(OpIndex op, const std::vector<at::Tensor>& values) override {
    const ValueId input = in_place_input_[static_cast<std::size_t>(op)];
    pass_.BeginOp(op, input < 0 ? nullptr : HeldAlone(values[static_cast<std::size_t>(input)]));
  }
  void AfterOp(OpIndex, const std::vector<at::Tensor>&) override { pass_.EndOp(); }

 private:
  // Where the storage of `tensor` starts, if nobody but the run's own list of values holds either.
  static const void* HeldAlone(const at::Tensor& tensor) {
    return tensor.defined() && tensor.use_count() == 1 && tensor.storage().use_count() == 1 ? tensor.storage().data() : nullptr;
  }

  Pass& pass_;
  const std::vector<ValueId>& in_place_input_;
};

// For a replay without a plan.
class Bystander final : public RunObserver {
 public:
  void BeforeOp(OpIndex, const std::vector<at::Tensor>&) override {}
  void AfterOp(OpIndex, const std::vector<at::Tensor>&) override {}
};

// An arena, from Borrow to Return.
class Lease {
 public:
  Lease(ArenaPool& pool, Bytes height) : pool_(pool), arena_(pool.Borrow(height)) {}
  ~Lease() { pool_.Return(arena_); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  PlannedArena& arena() { return arena_; }

 private:
  ArenaPool& pool_;
  PlannedArena& arena_;
};

// A generator that nobody but the capture holds was made inside the pass: each pass would make and seed another.
void RefuseOwnGenerators(const Program& program, std::initializer_list<const GeneratorStates*> holders) {
  for (const at::Generator& generator : program.generators) {
    std::size_t ours = 1;
    for (const GeneratorStates* each : holders) ours += each->Contains(generator) ? 1U : 0U;
    for (const Instruction& instruction : program.code) {
      for (const Argument& argument : instruction.arguments) {
        if (argument.constant.isGenerator() && argument.constant.toGenerator() == generator) ++ours;
      }
    }
    if (generator.getIntrusivePtr().use_count() <= ours) throw CaptureRefused("the pass makes a random generator of its own");
  }
}

}  // namespace

struct ExecGraph::Impl {
  Callable fn;
  CaptureOptions options;
  Program program;
  SlotTable table;
  std::vector<ValueId> in_place_input;  // for each op the input whose slot its output takes, or -1
  ArenaPool* pool = nullptr;
  std::uint64_t captured_bytes = 0;     // hash of the inputs of the capture
  GraphReport report;                   // the part that does not change

  std::mutex mutex;  // for bound, fault
  std::map<PlannedArena*, BoundTable*> bound;
  std::string fault;
  std::atomic<std::int64_t> replays{0}, hits{0}, misses{0};
  std::atomic<bool> checked{false}, failed{false};

  ~Impl() {
    for (const auto& [arena, each] : bound) arena->Unbind(each);
  }

  void Plan(const Calibration& calibration);
  const BoundTable& BoundTo(PlannedArena& arena);
  Tensors Serve(const Tensors& inputs, Fill fill);
  Tensors ServeOrRun(const Tensors& inputs, Fill fill);
  bool CheckIsDue(const Tensors& inputs);
  Tensors ServeChecked(const Tensors& inputs);
};

void ExecGraph::Impl::Plan(const Calibration& calibration) {
  const auto start = std::chrono::steady_clock::now();
  const Bytes alignment = pool->backend().Alignment();
  const std::vector<BufferLifetime> lifetimes = ComputeLifetimes(program.graph, calibration.trace, calibration.storage_of);
  std::vector<InPlacePair> pairs;
  if (options.in_place) pairs = FindInPlacePairs(program.graph, lifetimes, calibration.trace);
  const Packing packing = MakePacking(lifetimes, pairs, calibration.trace, alignment);
  const livepool::Plan plan = MakePlan(packing.problem);
  CheckPlan(packing.problem, plan);
  table = MakeSlotTable(packing, plan, pairs, calibration.trace, alignment);
  table.Check();
  in_place_input.assign(program.code.size(), -1);
  for (const InPlacePair& pair : pairs) in_place_input[static_cast<std::size_t>(pair.op)] = pair.input;

  report.ops = static_cast<std::int64_t>(program.code.size());
  report.buffers = static_cast<std::int64_t>(calibration.trace.allocations.size());
  report.in_place_buffers = static_cast<std::int64_t>(pairs.size());
  report.lower_bound_bytes = plan.lower_bound;
  report.arena_bytes = plan.height;
  report.algorithm = plan.algorithm;
  report.plan_ms = MillisecondsSince(start);
}

const BoundTable& ExecGraph::Impl::BoundTo(PlannedArena& arena) {
  const std::lock_guard lock(mutex);
  BoundTable*& each = bound[&arena];
  if (each == nullptr) each = arena.Bind(table);
  return *each;
}

// A replay that is given up has written nothing (finish_program.cc sees to it), and draws nothing.
Tensors ExecGraph::Impl::Serve(const Tensors& inputs, Fill fill) {
  std::optional<GeneratorStates> draws;
  if (program.random && program.guarded) draws = GeneratorStates::Save(program.device, program.generators);
  try {
    return ServeOrRun(inputs, fill);
  } catch (const GuardFailed&) {
    if (draws) draws->Restore();
    throw;
  }
}

Tensors ExecGraph::Impl::ServeOrRun(const Tensors& inputs, Fill fill) {
  replays.fetch_add(1, std::memory_order_relaxed);
  // Slots would be baked into a CUDA graph that the caller captures.
  if (!GetEnv().enabled || ServingForbidden(program.device)) {
    Bystander nobody;
    return RunProgram(program, inputs, nobody);
  }
  try {
    Lease lease(*pool, table.height);
    const DevicePassScope order(program.device, lease.arena());
    Pass pass(*pool, lease.arena(), BoundTo(lease.arena()), CurrentStream(program.device), fill);
    Server server(pass, in_place_input);
    Tensors outputs = RunProgram(program, inputs, server);
    hits.fetch_add(pass.hits(), std::memory_order_relaxed);
    misses.fetch_add(pass.misses(), std::memory_order_relaxed);
    return outputs;
  } catch (const OutOfMemory& error) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, error.what());
  }
}

bool ExecGraph::Impl::CheckIsDue(const Tensors& inputs) {
  const CheckPolicy& policy = GetEnv().check;
  if (CapturingStream(program.device)) return false;
  if (policy.every > 0 && replays.load(std::memory_order_relaxed) % policy.every == 0) return true;
  return policy.first && !checked.load(std::memory_order_acquire) && HashBytes(inputs) != captured_bytes;
}

Tensors ExecGraph::Impl::ServeChecked(const Tensors& inputs) {
  CheckedRun run = RunChecked(
      program, inputs, [&] { return Serve(inputs, Fill::kNan); },
      [&] {
        const ModesScope modes(ModesSwitch::ForCaller(program.modes, 0, c10::InferenceMode::is_enabled()));
        return fn(inputs);
      });
  if (run.fault) {
    const std::lock_guard lock(mutex);
    fault = "the replay is wrong: " + *run.fault + ". The graph is dropped; run the callable as it is and report this";
    failed.store(true, std::memory_order_release);
    throw CheckFailed(fault);
  }
  checked.store(true, std::memory_order_release);
  return std::move(run.outputs);
}

ExecGraph::ExecGraph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExecGraph::~ExecGraph() = default;

Tensors ExecGraph::Replay(const Tensors& inputs) {
  if (impl_->failed.load(std::memory_order_acquire)) {
    const std::lock_guard lock(impl_->mutex);
    throw CheckFailed(impl_->fault);
  }
  CheckInputs(impl_->program, inputs, impl_->options.argument_names);
  CheckState(impl_->program);
  CheckSurroundings(impl_->program);
  return impl_->CheckIsDue(inputs) ? impl_->ServeChecked(inputs) : impl_->Serve(inputs, GetEnv().fill);
}

GraphReport ExecGraph::Report() const {
  GraphReport report = impl_->report;
  report.replays = impl_->replays.load(std::memory_order_relaxed);
  report.hits = impl_->hits.load(std::memory_order_relaxed);
  report.misses = impl_->misses.load(std::memory_order_relaxed);
  report.checked = impl_->checked.load(std::memory_order_relaxed);
  return report;
}

std::shared_ptr<ExecGraph> Capture(Callable fn, const Tensors& inputs, CaptureOptions options) {
  const auto start = std::chrono::steady_clock::now();
  Tensors all = inputs;
  std::vector<StateTensor> state;
  for (const auto& [name, tensor] : options.state) {
    all.push_back(tensor);
    state.push_back({.name = name, .tensor = tensor});
  }
  for (const at::Tensor& tensor : all) {
    if (!tensor.defined()) throw CaptureRefused("an argument or a state tensor is undefined");
    if (const auto reason = RefusedKind(tensor)) throw CaptureRefused("an argument or a state tensor is " + *reason);
  }
  auto impl = std::make_unique<ExecGraph::Impl>();
  const DeviceId device = DeviceOf(all);
  impl->pool = &PoolOf(device);
  if (CapturingStream(device)) throw CaptureRefused("the stream is being captured into a CUDA graph; capture with livepool before");
  if (device.kind == DeviceId::Kind::kCuda) EnsureFreeTracking();

  GeneratorStates before = GeneratorStates::Save(device, {});
  at::autocast::clear_cache();  // a weight that was converted before the pass would be a hidden input
  Recorder recorder(device, inputs, std::move(state));
  Tensors outputs = recorder.Run([&] { return fn(inputs); });
  const GeneratorStates after = GeneratorStates::Save(device, recorder.generators());
  impl->program = recorder.Finish(outputs);
  before.Add(recorder.generators_before());
  const Bytes alignment = impl->pool->backend().Alignment();
  impl->report.sum_bytes = recorder.trace().SumBytes(alignment);
  impl->report.eager_live_peak_bytes = recorder.trace().LivePeak(alignment, recorder.AllocationsOf(outputs));
  outputs.clear();

  // The calibration starts where the recorded pass started, and leaves everything as that pass left it.
  const SavedTensors written = SavedTensors::OfWritten(impl->program, inputs);
  Calibration calibration;
  bool same_draws = false;
  {
    const ModesScope modes(impl->program.modes[0]);
    const auto restore = [&] {
      written.Restore();
      same_draws = GeneratorStates::Save(device, impl->program.generators).Equal(after);
      after.Restore();
    };
    before.Restore();
    try {
      calibration = Calibrate(impl->program, inputs);
    } catch (const GuardFailed& error) {
      restore();
      throw CaptureRefused(std::string("a second run takes another path: ") + error.what());
    } catch (...) {
      restore();
      throw;
    }
    restore();
  }
  RefuseOwnGenerators(impl->program, {&before, &after, &recorder.generators_before()});
  if (!same_draws) {
    throw CaptureRefused("the pass changes a random generator otherwise than by the ops that draw from it "
                         "(manual_seed, set_state or fork_rng inside)");
  }
  impl->captured_bytes = HashBytes(inputs);
  impl->fn = std::move(fn);
  impl->options = std::move(options);
  impl->Plan(calibration);
  impl->report.capture_ms = MillisecondsSince(start) - impl->report.plan_ms;
  return std::shared_ptr<ExecGraph>(new ExecGraph(std::move(impl)));
}

bool RefuseCurrentCapture(const std::string& reason) {
  Recorder* recorder = Recorder::Current();
  return recorder != nullptr && recorder->RefuseHostRead(reason);
}

}  // namespace livepool
