// What one planned allocation of plain eager code and its free cost: key, cursor, record, and the check against live
// slots; the way of a DataPtr through the allocators of allocator/torch, but for torch. Aim: at most 20 ns a pair on
// one core. `diverging`: one allocation in a hundred has another size than planned.
//     livepool_eager_bench --benchmark_repetitions=5

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "livepool/backend/host_backend.h"
#include "livepool/eager/eager_pass.h"

namespace livepool {
namespace {

constexpr std::size_t kAllocations = 400;

// Most buffers live for three allocations, every eighth for forty, as residuals do.
struct Program {
  std::vector<Bytes> sizes;  // as requested
  std::vector<const void*> frames;
  std::vector<std::vector<std::size_t>> deaths{std::vector<std::vector<std::size_t>>(kAllocations)};

  Program() {
    std::mt19937_64 random(1);
    for (std::size_t i = 0; i < kAllocations; ++i) {
      sizes.push_back(static_cast<Bytes>(1 + random() % 4096));
      frames.push_back(reinterpret_cast<const void*>(std::uintptr_t{1} << 40 | random() % 512 * 16));
      deaths[std::min(i + (i % 8 == 0 ? 40 : 2), kAllocations - 1)].push_back(i);
    }
  }
};

ArenaPool& Pool() {
  static auto* pool = new ArenaPool({}, std::make_unique<HostBackend>(), 64_MiB);
  return *pool;
}

// Returns the misses of one pass.
std::int64_t RunPass(const Program& program, const std::vector<Bytes>& sizes,
                     const std::shared_ptr<ScopePlans>& scope) {
  static std::byte upstream[kAllocations];  // addresses for what is not served
  static const std::byte* addresses[kAllocations];
  std::int64_t misses = 0;
  EagerPass pass(scope, Pool(), nullptr, nullptr, Fill::kNone);
  Server& server = pass;
  for (std::size_t i = 0; i < kAllocations; ++i) {
    addresses[i] = server.Serve(sizes[i], nullptr, program.frames[i]);
    if (addresses[i] == nullptr) {
      ++misses;
      addresses[i] = &upstream[i];
      pass.OnAlloc({}, addresses[i], sizes[i], nullptr);
    }
    for (const std::size_t dead : program.deaths[i]) {
      if (PlannedArena* arena = Pool().Find(addresses[dead])) {
        arena->Free(addresses[dead]);
      } else {
        pass.OnFree({}, addresses[dead]);
      }
    }
  }
  return misses;
}

void AllocateAndFree(benchmark::State& state) {
  const Program program;
  const auto scope = std::make_shared<ScopePlans>("bench", 64, [](const std::function<void()>& job) {
    job();
    return true;
  });
  for (int i = 0; i < 4; ++i) RunPass(program, program.sizes, scope);
  const bool diverging = state.range(0) != 0;
  std::vector<Bytes> sizes = program.sizes;
  for (std::size_t i = 0; diverging && i < sizes.size(); i += 100) sizes[i] += 4096;
  std::int64_t misses = 0;
  for (auto _ : state) misses += RunPass(program, sizes, scope);
  if (!diverging && misses > 0) state.SkipWithError("not everything was served");
  state.counters["pair"] = benchmark::Counter(
      static_cast<double>(kAllocations), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(AllocateAndFree)->ArgName("diverging")->Arg(0)->Arg(1);

}  // namespace
}  // namespace livepool
