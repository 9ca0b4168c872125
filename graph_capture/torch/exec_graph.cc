#include "livepool/capture/exec_graph.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <shared_mutex>

#include "capture_pass.h"
#include "check.h"
#include "device_context.h"
#include "graph_runner.h"
#include "lent_outputs.h"
#include "livepool/base/env.h"
#include "livepool/base/error.h"
#include "livepool/torch/install.h"
#include "op_facts.h"
#include "planned_program.h"
#include "recorder.h"
#include "signature.h"
#include "tensor_bytes.h"
#include "tensor_versions.h"

namespace livepool {
namespace {

// Of the state that the program uses and that counts versions.
std::vector<std::uint32_t> VersionsOfState(const Program& program) {
  std::vector<std::uint32_t> versions;
  for (const StateTensor& state : program.state) {
    if (state.used && !state.tensor.is_inference())
      versions.push_back(static_cast<std::uint32_t>(state.tensor._version()));
  }
  return versions;
}

}  // namespace

struct ExecGraph::Impl {
  Callable fn;
  CaptureOptions options;
  std::unique_ptr<PlannedProgram> planned;
  std::unique_ptr<GraphRunner> runner;  // of a program with fixed addresses
  SavedPlan saved;                      // but for problem and plan
  std::uint64_t captured_bytes = 0;     // hash of the inputs of the capture
  GraphReport report;                   // the part that does not change

  std::atomic<std::int64_t> replays{0}, hits{0}, misses{0};
  std::atomic<bool> checked{false}, failed{false};
  std::vector<std::uint32_t> captured_versions;  // of the state
  std::shared_mutex effects;                     // see Run
  std::mutex mutex;                              // for known_inputs, fault
  std::optional<Versions> known_inputs;          // whose bytes are known to be the capture's
  std::string fault;                             // why every replay fails

  // The capture was served by a saved plan, unless it was `another_pass`. The arena gives back what the recorded run
  // took.
  void NoteSaved(ArenaPool& pool, std::string another_pass) {
    report.as_saved = planned->as_saved();
    report.not_as_saved = std::move(another_pass);
    if (!report.as_saved && report.not_as_saved.empty()) {
      report.not_as_saved =
          "the ops are the same, and their allocations are not (other kernels, or wrapped with other options)";
    }
    pool.Trim();
  }

  // For replays as a CUDA graph; captures it.
  void PrepareGraph(ArenaPool& pool, const Tensors& inputs, const CaptureOptions& wanted) {
    const Program& program = planned->program();
    const bool launch = wanted.mode == CaptureOptions::Mode::kGraph;
    if (program.not_graphable) {
      report.not_launched = program.not_graphable->reason;
    } else if (launch && program.device.kind != DeviceId::Kind::kCuda) {
      report.not_launched = "the pass runs on the CPU, and CUDA graphs need a GPU";
    } else {
      runner = std::make_unique<GraphRunner>(
          *planned, pool, GraphRunner::Options{.launch = launch, .lend_outputs = wanted.outputs_in_arena});
      return runner->Prepare(inputs);
    }
    if (launch) SayNotLaunched(report.not_launched);
  }

  Tensors Serve(Tensors inputs, Fill fill) {
    replays.fetch_add(1, std::memory_order_relaxed);
    PlannedProgram::Run run = runner ? runner->Serve(inputs, fill) : planned->Serve(std::move(inputs), fill);
    hits.fetch_add(run.hits, std::memory_order_relaxed);
    misses.fetch_add(run.misses, std::memory_order_relaxed);
    return std::move(run.outputs);
  }

  bool CheckIsDue(const Tensors& inputs) {
    const CheckPolicy& policy = GetEnv().check;
    if (CapturingStream(planned->program().device)) return false;
    if (policy.every > 0 && replays.load(std::memory_order_relaxed) % policy.every == 0) return true;
    return policy.first && !checked.load(std::memory_order_acquire) && SeesNewBytes(inputs);
  }

  // True if inputs or state hold other bytes than at the capture, as far as is known without reading all state: a
  // state tensor counts as changed if its version is another. A pass without inputs is always new.
  bool SeesNewBytes(const Tensors& inputs) {
    if (inputs.empty() || VersionsOfState(planned->program()) != captured_versions) return true;
    const std::lock_guard lock(mutex);
    const std::optional<Versions> now = VersionsOf(inputs);
    if (now && now == known_inputs) return false;  // read before
    if (HashBytes(inputs) != captured_bytes) return true;
    known_inputs = now;
    return false;
  }

  // Runs that write to the caller's tensors wait for a check, which puts bytes back and runs twice, and it for them.
  Tensors Run(Tensors inputs) {
    const bool writes = planned->program().Writes();
    if (CheckIsDue(inputs)) {
      std::unique_lock alone(effects, std::defer_lock);
      if (writes) alone.lock();
      return ServeChecked(inputs);
    }
    std::shared_lock together(effects, std::defer_lock);
    if (writes) together.lock();
    return Serve(std::move(inputs), GetEnv().fill);
  }

  // The callable, in the memory in which it was recorded: there may not be enough for more.
  Tensors RunAsRecorded(const Tensors& inputs) {
    const Program& program = planned->program();
    ArenaPool& pool = PoolOf(program.device);
    Recorder recorder(program.device, inputs, program.state);
    Tensors outputs = recorder.Run([&] { return fn(inputs); }, pool, &saved);
    pool.Trim();  // it is larger than the plan of a replay
    return outputs;
  }

  Tensors ServeChecked(const Tensors& inputs) {
    const Program& program = planned->program();
    CheckedRun run = RunChecked(
        program, inputs, [&] { return Serve(inputs, Fill::kNan); },
        [&] {
          const ModesScope modes(ModesSwitch::ForCaller(program.modes, 0, c10::InferenceMode::is_enabled()));
          return options.plan && !Recorder::WhyNotNow() ? RunAsRecorded(inputs) : fn(inputs);
        });
    if (run.fault) {
      const std::lock_guard lock(mutex);
      fault =
          "the replay is wrong: " + *run.fault + ". The graph is dropped; run the callable as it is and report this";
      failed.store(true, std::memory_order_release);
      throw CheckFailed(fault);
    }
    checked.store(true, std::memory_order_release);
    return std::move(run.outputs);
  }
};

ExecGraph::ExecGraph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ExecGraph::~ExecGraph() = default;

Tensors ExecGraph::Replay(Tensors&& inputs) {
  if (impl_->failed.load(std::memory_order_acquire)) {
    const std::lock_guard lock(impl_->mutex);
    throw CheckFailed(impl_->fault);
  }
  const Program& program = impl_->planned->program();
  CheckInputs(program, inputs, impl_->options.argument_names);
  CheckState(program);
  CheckSurroundings(program);
  MoveOutOfArena(inputs);
  return impl_->Run(std::move(inputs));
}

SavedPlan ExecGraph::Save() const {
  SavedPlan saved = impl_->saved;
  saved.problem = impl_->planned->problem();
  saved.plan = impl_->planned->plan();
  return saved;
}

bool ExecGraph::Disposable() const {
  const Program& program = impl_->planned->program();
  return impl_->checked.load(std::memory_order_relaxed) && GetEnv().check.every == 0 && !program.Writes() &&
         !program.random;
}

bool ExecGraph::Unconditional() const {
  const CheckPolicy& policy = GetEnv().check;
  const bool checks_are_over = policy.every == 0 && (!policy.first || impl_->checked.load(std::memory_order_relaxed));
  return checks_are_over && !impl_->planned->program().guarded;
}

bool ExecGraph::Writes() const { return impl_->planned->program().Writes(); }

GraphReport ExecGraph::Report() const {
  GraphReport report = impl_->report;
  report.searching = impl_->planned->searching();
  const Plan plan = impl_->planned->plan();
  report.lower_bound_bytes = plan.lower_bound;
  report.arena_bytes = plan.height;
  report.algorithm = plan.algorithm;
  report.replays = impl_->replays.load(std::memory_order_relaxed);
  report.hits = impl_->hits.load(std::memory_order_relaxed);
  report.misses = impl_->misses.load(std::memory_order_relaxed);
  report.checked = impl_->checked.load(std::memory_order_relaxed);
  if (impl_->runner) {
    const GraphRunner::Counts counts = impl_->runner->counts();
    report.launches = counts.launches;
    report.graphs = counts.captures;
    report.not_launched = counts.not_launched;
  }
  return report;
}

namespace {

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// The device of all tensors that the pass is given. Throws CaptureRefused if one cannot be part of a graph.
DeviceId DeviceOfPass(const Tensors& inputs, const CaptureOptions& options) {
  Tensors all;
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    if (!tensor.defined()) throw CaptureRefused(name + " is undefined");
    if (const auto reason = RefusedKind(tensor)) throw CaptureRefused(name + " is " + *reason);
    all.push_back(tensor);
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    add(ArgumentName(i, options.argument_names), inputs[i]);
  }
  for (const auto& [name, tensor] : options.state) add("state '" + name + "'", tensor);
  return DeviceOf(all);
}

}  // namespace

std::shared_ptr<ExecGraph> Capture(Callable fn, const Tensors& inputs, CaptureOptions options) {
  const auto start = std::chrono::steady_clock::now();
  const DeviceId device = DeviceOfPass(inputs, options);
  ArenaPool& pool = PoolOf(device);
  // A graph's arguments are copied into the arena soon, and later passes must not end what the state is.
  MoveOutOfArena(inputs);
  for (const auto& each : options.state) MoveOutOfArena({each.second});
  CapturedPass pass = CapturePass(fn, inputs, options, pool);
  const double capture_ms = MillisecondsSince(start);

  auto impl = std::make_unique<ExecGraph::Impl>();
  impl->captured_bytes = HashBytes(inputs);
  impl->captured_versions = VersionsOfState(pass.program);
  impl->report.ops = static_cast<std::int64_t>(pass.program.code.size());
  impl->report.buffers = static_cast<std::int64_t>(pass.calibration.trace.allocations.size());
  const auto plan_start = std::chrono::steady_clock::now();
  impl->planned = std::make_unique<PlannedProgram>(
      std::move(pass.program), pass.calibration, pool,
      PlannedProgram::Options{.in_place = options.in_place,
                              .search = options.search_in_background && GetEnv().search,
                              .saved = pass.not_as_saved.empty() ? options.plan.get() : nullptr,
                              .lend_outputs = options.outputs_in_arena});
  impl->report.plan_ms = MillisecondsSince(plan_start);
  impl->report.capture_ms = capture_ms;
  impl->report.sum_bytes = pass.sum_bytes;
  impl->report.eager_live_peak_bytes = pass.eager_live_peak_bytes;
  impl->report.in_place_buffers = impl->planned->in_place_buffers();
  impl->saved = std::move(pass.saved);
  if (options.plan) impl->NoteSaved(pool, std::move(pass.not_as_saved));
  if (options.mode != CaptureOptions::Mode::kReplay) impl->PrepareGraph(pool, inputs, options);
  impl->fn = std::move(fn);
  impl->options = std::move(options);
  return std::shared_ptr<ExecGraph>(new ExecGraph(std::move(impl)));
}

bool RefuseCurrentCapture(const std::string& reason) {
  Recorder* recorder = Recorder::Current();
  return recorder != nullptr && recorder->RefuseHostRead(reason);
}

bool CaptureUnderWay() { return Recorder::Current() != nullptr; }

}  // namespace livepool
