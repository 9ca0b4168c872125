// What one planned allocation and its free cost, the check against live slots included: the way of a DataPtr
// through the allocators of allocator/torch, but for torch. Aim: at most 20 ns a pair on one core.
//     livepool_serve_bench --benchmark_repetitions=5

#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "livepool/backend/host_backend.h"
#include "livepool/pool/pass.h"
#include "planned_pass.h"

namespace livepool {
namespace {

ArenaPool& Pool() {
  static auto* pool = new ArenaPool({}, std::make_unique<HostBackend>(), 64_MiB);
  return *pool;
}

// `idle` arenas come before the one that serves: deleters ask them first whether an address is theirs.
void ServeAndFree(benchmark::State& state) {
  const PlannedPass planned(64);
  std::vector<PlannedArena*> idle;
  for (std::int64_t i = 0; i < state.range(0); ++i) idle.push_back(&Pool().Borrow(1));
  PlannedArena& arena = Pool().Borrow(planned.table.height);
  const BoundTable* table = arena.Bind(planned.table);
  std::vector<void*> addresses(PlannedPass::kSlots);
  std::int64_t misses = 0;
  for (auto _ : state) {
    Pass pass(Pool(), arena, *table, nullptr, Fill::kNone);
    for (std::size_t op = 0; op < PlannedPass::kSlots; ++op) {
      pass.BeginOp(static_cast<OpIndex>(op), nullptr);
      addresses[op] = CurrentThread().pass->Serve(planned.sizes[op], nullptr, nullptr);
      pass.EndOp();
      for (const std::size_t dead : planned.deaths[op]) Pool().Find(addresses[dead])->Free(addresses[dead]);
    }
    misses += pass.misses();
  }
  Pool().Return(arena);
  for (PlannedArena* each : idle) Pool().Return(*each);
  if (misses > 0) state.SkipWithError("not everything was served");
  state.counters["pair"] =
      benchmark::Counter(static_cast<double>(PlannedPass::kSlots),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(ServeAndFree)->ArgName("idle")->Arg(0)->Arg(3);

}  // namespace
}  // namespace livepool
