// What one planned allocation of plain eager code and its free cost: key, cursor, record, and the check against live
// slots; the way of a DataPtr through the allocators of allocator/torch, but for torch. Aim: at most 20 ns a pair on
// one core. `diverging`: one allocation in a hundred has another size than planned.
// The same with passes that are found (found_passes.h), and where nothing repeats and the search sleeps.
//     livepool_eager_bench --benchmark_repetitions=5

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "livepool/backend/host_backend.h"
#include "livepool/eager/found_passes.h"

namespace livepool {
namespace {

constexpr std::size_t kAllocations = 400;
const auto* const kTop = reinterpret_cast<const std::byte*>(std::uintptr_t{1} << 40);

// Most buffers live for three allocations, every eighth for forty, as residuals do.
struct Program {
  std::vector<Bytes> sizes;  // as requested
  std::vector<const void*> frames;
  std::vector<std::vector<std::size_t>> deaths{std::vector<std::vector<std::size_t>>(kAllocations)};

  Program() {
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < kAllocations; ++i) {
      sizes.push_back(static_cast<Bytes>(1 + random() % 4096));
      frames.push_back(kTop - random() % 512 * 16);
      deaths[std::min(i + (i % 8 == 0 ? 40 : 2), kAllocations - 1)].push_back(i);
    }
  }
};

ArenaPool& Pool() {
  static auto* pool = new ArenaPool({}, std::make_unique<HostBackend>(), 64_MiB);
  return *pool;
}

// Returns the misses of one pass.
std::int64_t RunOn(Server& server, TraceSink& sink, FreeWatch* watch, const Program& program,
                   const std::vector<Bytes>& sizes) {
  static std::byte upstream[kAllocations];  // addresses for what is not served
  static const std::byte* addresses[kAllocations];
  std::int64_t misses = 0;
  for (std::size_t i = 0; i < kAllocations; ++i) {
    addresses[i] = server.Serve(sizes[i], nullptr, program.frames[i]);
    if (addresses[i] == nullptr) {
      ++misses;
      addresses[i] = &upstream[i];
      sink.OnAlloc({}, addresses[i], sizes[i], nullptr);
    }
    for (const std::size_t dead : program.deaths[i]) {
      // The last ones die in the loop around the pass.
      if (watch != nullptr) watch->OnAnyFree(addresses[dead], i + 1 == kAllocations ? kTop : kTop - 8192);
      if (PlannedArena* arena = Pool().Find(addresses[dead])) {
        arena->Free(addresses[dead]);
      } else {
        sink.OnFree({}, addresses[dead]);
      }
    }
  }
  return misses;
}

std::int64_t RunPass(const Program& program, const std::vector<Bytes>& sizes,
                     const std::shared_ptr<ScopePlans>& scope) {
  EagerPass pass(scope, Pool(), nullptr, kTop, Fill::kNone);
  return RunOn(pass, pass, nullptr, program, sizes);
}

bool RunNow(const std::function<void()>& job) {
  job();
  return true;
}

void CountPairs(benchmark::State& state) {
  state.counters["pair"] = benchmark::Counter(
      static_cast<double>(kAllocations), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void AllocateAndFree(benchmark::State& state) {
  const Program program;
  const auto scope = std::make_shared<ScopePlans>("bench", 64, &RunNow);
  for (int i = 0; i < 4; ++i) RunPass(program, program.sizes, scope);
  const bool diverging = state.range(0) != 0;
  std::vector<Bytes> sizes = program.sizes;
  for (std::size_t i = 0; diverging && i < sizes.size(); i += 100) sizes[i] += 4096;
  std::int64_t misses = 0;
  for (auto _ : state) misses += RunPass(program, sizes, scope);
  if (!diverging && misses > 0) state.SkipWithError("not everything was served");
  CountPairs(state);
}
BENCHMARK(AllocateAndFree)->ArgName("diverging")->Arg(0)->Arg(1);

void Found(benchmark::State& state) {
  const Program program;
  FoundPasses found("bench", Pool(), nullptr, kTop, Fill::kNone, &RunNow);
  for (int i = 0; i < 400; ++i) RunOn(found, found, &found, program, program.sizes);
  std::int64_t misses = 0;
  for (auto _ : state) misses += RunOn(found, found, &found, program, program.sizes);
  if (misses > 0) state.SkipWithError("not everything was served");
  CountPairs(state);
}
BENCHMARK(Found);

void NotFound(benchmark::State& state) {
  Program program;
  FoundPasses found("bench", Pool(), nullptr, kTop, Fill::kNone, &RunNow);
  std::mt19937_64 random(2);
  while (found.counts()->Read().state != PassFinder::State::kAsleep) {
    for (const void*& frame : program.frames) frame = kTop - random() % 4096 * 16;
    RunOn(found, found, &found, program, program.sizes);
  }
  for (auto _ : state) RunOn(found, found, &found, program, program.sizes);
  CountPairs(state);
}
BENCHMARK(NotFound)->Iterations(1000);

}  // namespace
}  // namespace livepool
