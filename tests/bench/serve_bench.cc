// What one planned allocation and its free cost, the check against live slots included: the way of a DataPtr
// through the allocators of allocator/torch, but for torch. Aim: at most 20 ns a pair on one core.
//     livepool_serve_bench --benchmark_repetitions=5

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "livepool/backend/host_backend.h"
#include "livepool/plan/planner.h"
#include "livepool/pool/pass.h"

namespace livepool {
namespace {

constexpr std::size_t kSlots = 400;

// A pass of 400 ops with one allocation each. Most buffers live for three ops, every eighth for forty, as
// residuals do.
struct PlannedPass {
  SlotTable table;
  std::vector<Bytes> sizes;                      // as requested
  std::vector<std::vector<std::size_t>> deaths;  // after op i, these allocations die

  PlannedPass() : deaths(kSlots) {
    std::mt19937_64 random(1);
    Problem problem;
    for (std::size_t i = 0; i < kSlots; ++i) {
      const std::size_t death = std::min(i + (i % 8 == 0 ? 40 : 2), kSlots - 1);
      const Bytes size = static_cast<Bytes>(1 + random() % 4096);
      sizes.push_back(size);
      deaths[death].push_back(i);
      problem.buffers.push_back({.id = static_cast<std::int64_t>(i),
                                 .lifetime = {static_cast<Time>(i), static_cast<Time>(death) + 1},
                                 .size = AlignUp(size, 64),
                                 .alignment = 64});
    }
    const Plan plan = MakePlan(problem);
    table.height = plan.height;
    for (std::size_t i = 0; i < kSlots; ++i) {
      table.first_of_op.push_back(static_cast<std::uint32_t>(i + 1));
      table.ranges.push_back({.offset = plan.offsets[i], .size = problem.buffers[i].size});
      table.allocations.push_back({.size = problem.buffers[i].size, .range = static_cast<std::int32_t>(i)});
    }
    table.Check();
  }
};

ArenaPool& Pool() {
  static auto* pool = new ArenaPool({}, std::make_unique<HostBackend>(), 64_MiB);
  return *pool;
}

// `idle` arenas come before the one that serves: deleters ask them first whether an address is theirs.
void ServeAndFree(benchmark::State& state) {
  const PlannedPass planned;
  std::vector<PlannedArena*> idle;
  for (std::int64_t i = 0; i < state.range(0); ++i) idle.push_back(&Pool().Borrow(1));
  PlannedArena& arena = Pool().Borrow(planned.table.height);
  const BoundTable* table = arena.Bind(planned.table);
  std::vector<void*> addresses(kSlots);
  std::int64_t misses = 0;
  for (auto _ : state) {
    Pass pass(Pool(), arena, *table, nullptr, Fill::kNone);
    for (std::size_t op = 0; op < kSlots; ++op) {
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
  state.counters["pair"] = benchmark::Counter(
      static_cast<double>(kSlots), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(ServeAndFree)->ArgName("idle")->Arg(0)->Arg(3);

}  // namespace
}  // namespace livepool
