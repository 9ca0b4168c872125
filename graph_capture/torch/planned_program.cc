#include "planned_program.h"

#include <c10/util/Exception.h>

#include <optional>

#include "device_context.h"
#include "executor.h"
#include "lent_outputs.h"
#include "livepool/base/error.h"
#include "livepool/graph/packing.h"
#include "livepool/plan/planner.h"
#include "livepool/plan/validate.h"
#include "livepool/pool/arena_lease.h"
#include "livepool/pool/pass.h"
#include "slot_server.h"

namespace livepool {
namespace {

// For a replay without a plan.
class NoServing final : public RunObserver {
 public:
  void BeforeOp(OpIndex, const std::vector<at::Tensor>&) override {}
  void AfterOp(OpIndex, const std::vector<at::Tensor>&) override {}
};

// Of the search in the background: some seconds of one core.
constexpr std::int64_t kBackgroundNodes = 1'000'000;

}  // namespace

PlannedProgram::PlannedProgram(Program program, const Calibration& calibration, ArenaPool& pool, const Options& options)
    : program_(std::move(program)),
      pool_(pool),
      in_place_input_(program_.code.size(), -1),
      lend_outputs_(options.lend_outputs) {
  const Bytes alignment = pool.backend().Alignment();
  const std::vector<BufferLifetime> lifetimes =
      ComputeLifetimes(program_.graph, calibration.trace, calibration.storage_of);
  std::vector<InPlacePair> pairs;
  if (options.in_place) pairs = FindInPlacePairs(program_.graph, lifetimes, calibration.trace);
  Packing packing = MakePacking(lifetimes, pairs, calibration.trace, alignment);
  as_saved_ = options.saved != nullptr && packing.problem == options.saved->problem;
  Plan plan = as_saved_ ? options.saved->plan : MakePlan(packing.problem);
  CheckPlan(packing.problem, plan);
  SlotTable table = MakeSlotTable(packing, plan, pairs, calibration.trace, alignment);
  problem_ = packing.problem;
  std::optional<PlannerOptions> background;
  if (options.search) background = PlannerOptions{.search_nodes = kBackgroundNodes};
  plan_ = std::make_unique<PlanInService>(std::move(packing.problem), std::move(plan), std::move(table), background);
  for (const InPlacePair& pair : pairs) in_place_input_[static_cast<std::size_t>(pair.op)] = pair.input;
  in_place_buffers_ = static_cast<std::int64_t>(pairs.size());
}

// A guard that fails has written nothing before (finish_program.cc sees to it); what else a run that writes had done
// when it failed, eager would have done too.
PlannedProgram::Run PlannedProgram::Serve(std::vector<at::Tensor> inputs, Fill fill) {
  std::optional<GeneratorStates> draws;
  if (program_.random && (program_.guarded || !program_.Writes()))
    draws = GeneratorStates::Save(program_.device, program_.generators);
  try {
    return ServeOnce(std::move(inputs), fill);
  } catch (const GuardFailed&) {
    if (draws) draws->Restore();
    throw;
  } catch (const OutOfMemory& error) {  // before the first op
    if (draws) draws->Restore();
    TORCH_CHECK_WITH(OutOfMemoryError, false, error.what());
  } catch (...) {
    if (draws && !program_.Writes()) draws->Restore();
    throw;
  }
}

PlannedProgram::Run PlannedProgram::RunUpstream(std::vector<at::Tensor> inputs) const {
  NoServing nobody;
  return {.outputs = RunProgram(program_, std::move(inputs), nobody)};
}

PlannedProgram::Run PlannedProgram::ServeOnce(std::vector<at::Tensor> inputs, Fill fill) {
  // Slots would be baked into a CUDA graph that the caller captures.
  if (!GetEnv().enabled || ServingForbidden(program_.device)) return RunUpstream(std::move(inputs));
  const std::shared_ptr<ServedPlan> plan = plan_->ForNextPass(pool_);  // outlives the lease
  std::optional<ArenaLease> lease;
  try {
    lease.emplace(pool_, plan->table().height);
  } catch (const OutOfMemory&) {
    return RunUpstream(std::move(inputs));  // counted by the pool; upstream says so if it has no memory either
  }
  PlannedArena& arena = lease->arena();
  const DevicePassScope order(program_.device, arena);
  Run run;
  {
    Pass pass(pool_, arena, plan->BoundTo(arena), CurrentStream(program_.device), fill);
    SlotServer server(pass, in_place_input_);
    run.outputs = RunProgram(program_, std::move(inputs), server);
    run.hits = pass.hits();
    run.misses = pass.misses();
  }
  if (lend_outputs_) Lender(program_.device, arena, fill).Lend(run.outputs);
  return run;
}

}  // namespace livepool
