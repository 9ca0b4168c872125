#include "planned_program.h"

#include <c10/util/Exception.h>

#include <optional>

#include "device_context.h"
#include "executor.h"
#include "livepool/base/error.h"
#include "livepool/graph/packing.h"
#include "livepool/plan/planner.h"
#include "livepool/plan/validate.h"
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

}  // namespace

PlannedProgram::PlannedProgram(Program program, const Calibration& calibration, ArenaPool& pool, bool in_place)
    : program_(std::move(program)), pool_(pool), in_place_input_(program_.code.size(), -1) {
  const Bytes alignment = pool.backend().Alignment();
  const std::vector<BufferLifetime> lifetimes = ComputeLifetimes(program_.graph, calibration.trace, calibration.storage_of);
  std::vector<InPlacePair> pairs;
  if (in_place) pairs = FindInPlacePairs(program_.graph, lifetimes, calibration.trace);
  const Packing packing = MakePacking(lifetimes, pairs, calibration.trace, alignment);
  plan_ = MakePlan(packing.problem);
  CheckPlan(packing.problem, plan_);
  table_ = MakeSlotTable(packing, plan_, pairs, calibration.trace, alignment);
  table_.Check();
  for (const InPlacePair& pair : pairs) in_place_input_[static_cast<std::size_t>(pair.op)] = pair.input;
  in_place_buffers_ = static_cast<std::int64_t>(pairs.size());
}

PlannedProgram::~PlannedProgram() {
  for (const auto& [arena, table] : bound_) arena->Unbind(table);
}

const BoundTable& PlannedProgram::BoundTo(PlannedArena& arena) {
  const std::lock_guard lock(mutex_);
  BoundTable*& table = bound_[&arena];
  if (table == nullptr) table = arena.Bind(table_);
  return *table;
}

// A replay that is given up has written nothing (finish_program.cc sees to it), and draws nothing.
PlannedProgram::Run PlannedProgram::Serve(const std::vector<at::Tensor>& inputs, Fill fill) {
  std::optional<GeneratorStates> draws;
  if (program_.random && program_.guarded) draws = GeneratorStates::Save(program_.device, program_.generators);
  try {
    return ServeOnce(inputs, fill);
  } catch (const GuardFailed&) {
    if (draws) draws->Restore();
    throw;
  } catch (const OutOfMemory& error) {
    TORCH_CHECK_WITH(OutOfMemoryError, false, error.what());
  }
}

PlannedProgram::Run PlannedProgram::RunUpstream(const std::vector<at::Tensor>& inputs) const {
  NoServing nobody;
  return {.outputs = RunProgram(program_, inputs, nobody)};
}

PlannedProgram::Run PlannedProgram::ServeOnce(const std::vector<at::Tensor>& inputs, Fill fill) {
  // Slots would be baked into a CUDA graph that the caller captures.
  if (!GetEnv().enabled || ServingForbidden(program_.device)) return RunUpstream(inputs);
  std::optional<Lease> lease;
  try {
    lease.emplace(pool_, table_.height);
  } catch (const ArenasExhausted&) {
    return RunUpstream(inputs);
  }
  PlannedArena& arena = lease->arena();
  const DevicePassScope order(program_.device, arena);
  Pass pass(pool_, arena, BoundTo(arena), CurrentStream(program_.device), fill);
  SlotServer server(pass, in_place_input_);
  std::vector<at::Tensor> outputs = RunProgram(program_, inputs, server);
  return {.outputs = std::move(outputs), .hits = pass.hits(), .misses = pass.misses()};
}

}  // namespace livepool
