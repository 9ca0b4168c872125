#include "graph_runner.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/as_strided.h>
#include <c10/core/InferenceMode.h>

#include <cstdio>
#include <optional>

#include "device_context.h"
#include "executor.h"
#include "livepool/base/error.h"
#include "livepool/pool/pass.h"
#include "livepool/pool/thread_state.h"
#include "slot_server.h"
#include "storage_views.h"

namespace livepool {
namespace {

// Callers who bring other tensors again and again to a pass that writes to them are better off without graphs.
constexpr std::int64_t kMostCaptures = 8;

std::vector<const void*> AddressesOfFixed(const Program& program, const std::vector<at::Tensor>& inputs) {
  std::vector<const void*> addresses;
  for (const std::size_t i : program.fixed_inputs) addresses.push_back(inputs[i].const_data_ptr());
  return addresses;
}

// The elements of `tensor` from the first to the last, with what lies between.
at::Tensor Flat(const at::Tensor& tensor, std::int64_t span) {
  return at::as_strided(tensor, {span}, {1}, tensor.storage_offset());
}

}  // namespace

void SayNotLaunched(const std::string& why) {
  if (GetEnv().log < LogLevel::kWarning) return;
  std::fprintf(stderr, "livepool: a captured pass is replayed op by op, not as a CUDA graph: %s\n", why.c_str());
}

struct GraphRunner::Captured {
  PlannedArena* arena = nullptr;
  std::shared_ptr<ServedPlan> plan;
  std::vector<const void*> fixed;
  std::vector<at::Tensor> copies;  // of Program::copied_inputs, flat; not owned
  ServedOutputs outputs;
  std::int64_t hits = 0, misses = 0;  // of the capture; each launch uses the same bytes
  std::unique_ptr<CudaGraph> graph;
};

// The home's arena, if it is to be had.
class GraphRunner::HeldArena {
 public:
  HeldArena(GraphHome& home, Bytes height) : home_(home), arena_(home.TryHold(height)) {}
  ~HeldArena() {
    if (arena_ != nullptr) home_.Return(*arena_);
  }
  HeldArena(const HeldArena&) = delete;
  HeldArena& operator=(const HeldArena&) = delete;
  PlannedArena* get() const { return arena_; }

 private:
  GraphHome& home_;
  PlannedArena* const arena_;
};

GraphRunner::GraphRunner(PlannedProgram& planned, ArenaPool& pool, Options options)
    : planned_(planned), pool_(pool), options_(options), home_(options.launch ? &GraphHome::Of(pool) : nullptr) {
  if (home_ != nullptr) home_->Enter();
}

GraphRunner::~GraphRunner() {
  captured_.reset();
  if (home_ != nullptr) home_->Leave();
}

bool GraphRunner::MayLaunch() const {
  return home_ != nullptr && !given_up_.load(std::memory_order_acquire) && GetEnv().enabled &&
         !ServingForbidden(program().device);
}

void GraphRunner::Prepare(const std::vector<at::Tensor>& inputs) {
  if (!MayLaunch()) return;
  try {
    const std::shared_ptr<ServedPlan> plan = planned_.TakePlan();
    const HeldArena held(*home_, plan->table().height);
    if (held.get() == nullptr) return;
    threads_.insert(ThreadNumber());  // it has run the ops: the calibration was the last to do so
    (void)IsReady(*held.get(), plan, inputs);
  } catch (const OutOfMemory& error) {
    NotLaunched(error.what(), /*warn=*/false);
  }
}

PlannedProgram::Run GraphRunner::Serve(const std::vector<at::Tensor>& inputs, Fill fill) {
  if (MayLaunch()) {
    try {
      const std::shared_ptr<ServedPlan> plan = planned_.TakePlan();
      const HeldArena held(*home_, plan->table().height);
      if (held.get() == nullptr) {
        NotLaunched("the arena of the graphs is in use, or tensors of another pass live there", /*warn=*/false);
      } else if (IsReady(*held.get(), plan, inputs)) {
        return Launch(*held.get(), inputs, fill);
      }
    } catch (const OutOfMemory& error) {
      NotLaunched(error.what(), /*warn=*/false);
    }
  }
  return RunOps(inputs, fill);
}

// Of another pass or thread's graph, the bytes are safe until its holder has copied them out (slots are live).
PlannedProgram::Run GraphRunner::RunOps(const std::vector<at::Tensor>& inputs, Fill fill) {
  PlannedProgram::Run run = planned_.Serve(inputs, fill);
  if (!options_.lend_outputs) run.outputs = ServedOutputs(program(), run.outputs).Copy(inputs);
  return run;
}

bool GraphRunner::IsReady(PlannedArena& arena, const std::shared_ptr<ServedPlan>& plan,
                          const std::vector<at::Tensor>& inputs) {
  const std::vector<const void*> fixed = AddressesOfFixed(program(), inputs);
  if (captured_ != nullptr && captured_->arena == &arena && captured_->plan == plan) {
    if (captured_->fixed == fixed) return true;
    if (fixed != wanted_fixed_) {
      wanted_fixed_ = fixed;
      NotLaunched("an argument that the pass writes to or returns lies at another place", /*warn=*/false);
      return false;
    }
  }
  if (threads_.insert(ThreadNumber()).second) {
    NotLaunched("a new graph is needed, and this thread's libraries are not set up for one yet", /*warn=*/false);
    return false;
  }
  DropFor(arena, *plan);
  if (captures_.load(std::memory_order_relaxed) >= kMostCaptures) {
    given_up_.store(true, std::memory_order_release);
    NotLaunched("the arguments that the pass writes to or returns lie at other places again and again", /*warn=*/true);
    return false;
  }
  try {
    CaptureOn(arena, plan, inputs);
  } catch (const std::exception& error) {
    captured_.reset();
    given_up_.store(true, std::memory_order_release);
    const std::string text = error.what();
    NotLaunched("CUDA cannot capture it: " + text.substr(0, text.find('\n')), /*warn=*/true);
  }
  return captured_ != nullptr;
}

// The graph of an old plan has kept the arena as large as that plan.
void GraphRunner::DropFor(PlannedArena& arena, const ServedPlan& plan) {
  const bool smaller = captured_ != nullptr && captured_->plan->table().height > plan.table().height;
  captured_.reset();
  if (!smaller || arena.arena().pinned() || !arena.arena().backend().MayUnmap()) return;
  (void)arena.TrimHeld();
  arena.arena().Grow(plan.table().height);
}

void GraphRunner::CaptureOn(PlannedArena& arena, const std::shared_ptr<ServedPlan>& plan,
                            const std::vector<at::Tensor>& inputs) {
  auto made = std::make_unique<Captured>();
  made->arena = &arena;
  made->plan = plan;
  made->fixed = AddressesOfFixed(program(), inputs);
  {
    const CaptureStream stream(*home_);
    const DevicePassScope order(program().device, arena);
    if (GetEnv().fill == Fill::kZero) {
      arena.arena().backend().Fill(arena.arena().base(), plan->table().height, std::byte{0},
                                   CurrentStream(program().device));
    }
    Pass pass(pool_, arena, plan->BoundTo(arena), CurrentStream(program().device), Fill::kNone);
    SlotServer server(pass, planned_.in_place_inputs());
    ProgramRun run(program(), inputs, server);
    // Between the ops the capture itself asks for memory, which no plan foresees.
    const auto run_ops = [&](std::size_t begin, std::size_t end) {
      const std::int64_t before = pass.misses();
      run.Ops(begin, end);
      made->misses += pass.misses() - before;
    };
    run_ops(0, program().copying_ops);
    for (const CopiedInput& copied : program().copied_inputs) {
      const at::Tensor& copy = run.value(copied.copy);
      if (!arena.arena().Contains(copy.storage().data()))
        throw Error("an argument's copy could not be served from its slot");
      made->copies.push_back(NotOwned(Flat(copy, copied.span)));
    }
    made->graph = std::make_unique<CudaGraph>(*home_, arena, program().generators, [&] {
      run_ops(program().copying_ops, program().code.size());
      made->outputs = ServedOutputs(program(), run.Outputs());
    });
    made->hits = pass.hits();
  }
  captured_ = std::move(made);
  captures_.fetch_add(1, std::memory_order_relaxed);
}

PlannedProgram::Run GraphRunner::Launch(PlannedArena& arena, const std::vector<at::Tensor>& inputs, Fill fill) {
  MarkWritten(program(), inputs);
  const DevicePassScope order(program().device, arena);
  if (fill == Fill::kNan) {
    arena.arena().backend().Fill(arena.arena().base(), captured_->plan->table().height, std::byte{0xFF},
                                 CurrentStream(program().device));
  }
  {
    const at::AutoDispatchBelowADInplaceOrView below;
    for (std::size_t i = 0; i < captured_->copies.size(); ++i) {
      const CopiedInput& copied = program().copied_inputs[i];
      captured_->copies[i].copy_(Flat(inputs[copied.input], copied.span));
    }
  }
  captured_->graph->Launch();
  launches_.fetch_add(1, std::memory_order_relaxed);
  Lender lender(program().device, arena, fill);
  return {.outputs = options_.lend_outputs ? captured_->outputs.Lend(inputs, lender) : captured_->outputs.Copy(inputs),
          .hits = captured_->hits,
          .misses = captured_->misses};
}

void GraphRunner::NotLaunched(const std::string& why, bool warn) {
  const std::lock_guard lock(mutex_);
  not_launched_ = why;
  if (warn) SayNotLaunched(why);
}

GraphRunner::Counts GraphRunner::counts() const {
  const std::lock_guard lock(mutex_);
  return {.launches = launches_.load(std::memory_order_relaxed),
          .captures = captures_.load(std::memory_order_relaxed),
          .not_launched = not_launched_};
}

}  // namespace livepool
