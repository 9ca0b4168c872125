// What one allocation and its free cost as torch makes them, with a c10::DataPtr: 400 of them in the order of a pass.
//     livepool_allocator_bench --benchmark_repetitions=9
//
//   cpu/native, cuda/native          torch's own allocator
//   cpu/unplanned, cuda/unplanned    livepool with no pass running: aim, at most 5 % more than native
//   cpu/planned, cuda/planned        from slots; on CUDA with the waits and statistics around the pass
//   cpu/recorded, cuda/recorded      while a calibration listens
//
// The counter "pair" is the time for one allocation with its free. Without a GPU there is no cuda/.
#include <benchmark/benchmark.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "livepool/pool/pass.h"
#include "livepool/torch/cuda_pass.h"
#include "livepool/torch/install.h"
#include "planned_pass.h"
#ifdef LIVEPOOL_HAVE_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace livepool {
namespace {

using Data = std::vector<c10::DataPtr>;

// All ops of the pass; `begin` and `end` are called around each.
template <typename Begin, typename End>
void RunPass(const PlannedPass& planned, c10::Allocator& allocator, Data& data, const Begin& begin, const End& end) {
  for (std::size_t op = 0; op < PlannedPass::kSlots; ++op) {
    begin(static_cast<OpIndex>(op));
    data[op] = allocator.allocate(static_cast<std::size_t>(planned.sizes[op]));
    end();
    for (const std::size_t dead : planned.deaths[op]) data[dead].clear();
  }
}

void CountPairs(benchmark::State& state) {
  state.counters["pair"] =
      benchmark::Counter(static_cast<double>(PlannedPass::kSlots),
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void Plain(benchmark::State& state, c10::Allocator& allocator, Bytes alignment) {
  const PlannedPass planned(alignment);
  Data data(PlannedPass::kSlots);
  const auto nothing = [](auto...) {};
  for (auto _ : state) RunPass(planned, allocator, data, nothing, nothing);
  CountPairs(state);
}

struct Listener final : TraceSink {
  void OnAlloc(DeviceId, const void*, Bytes, StreamHandle) override { ++events; }
  void OnFree(DeviceId, const void*) override { ++events; }
  std::int64_t events = 0;
};

void Recorded(benchmark::State& state, c10::Allocator& allocator, Bytes alignment) {
  Listener listener;
  const RecordingScope recording(listener);
  Plain(state, allocator, alignment);
  if (listener.events != 2 * state.iterations() * static_cast<std::int64_t>(PlannedPass::kSlots)) {
    state.SkipWithError("not every event was heard of");
  }
}

void Planned(benchmark::State& state, c10::Allocator& allocator, DeviceId device, StreamHandle stream) {
  ArenaPool& pool = PoolOf(device);
  const PlannedPass planned(pool.backend().Alignment());
  PlannedArena& arena = pool.Borrow(planned.table.height);
  BoundTable* table = arena.Bind(planned.table);
  Data data(PlannedPass::kSlots);
  std::int64_t misses = 0;
  for (auto _ : state) {
    if (device.kind == DeviceId::Kind::kCuda) BeginDevicePass(device.index, arena, stream);
    {
      Pass pass(pool, arena, *table, stream, Fill::kNone);
      RunPass(planned, allocator, data, [&](OpIndex op) { pass.BeginOp(op, nullptr); }, [&] { pass.EndOp(); });
      misses += pass.misses();
    }
    if (device.kind == DeviceId::Kind::kCuda) EndDevicePass(device.index, arena, stream);
  }
  arena.Unbind(table);
  pool.Return(arena);
  if (misses > 0) state.SkipWithError("not everything was served");
  CountPairs(state);
}

void RegisterAll(const std::string& kind, c10::Allocator& native, c10::Allocator& ours, DeviceId device,
                 Bytes alignment, StreamHandle stream) {
  benchmark::RegisterBenchmark((kind + "/native").c_str(),
                               [=, &native](auto& state) { Plain(state, native, alignment); });
  benchmark::RegisterBenchmark((kind + "/unplanned").c_str(),
                               [=, &ours](auto& state) { Plain(state, ours, alignment); });
  benchmark::RegisterBenchmark((kind + "/planned").c_str(),
                               [=, &ours](auto& state) { Planned(state, ours, device, stream); });
  benchmark::RegisterBenchmark((kind + "/recorded").c_str(),
                               [=, &ours](auto& state) { Recorded(state, ours, alignment); });
}

void RegisterCpu() {
  c10::Allocator& native = *c10::GetAllocator(c10::kCPU);
  Install(DeviceId::Kind::kHost);
  RegisterAll("cpu", native, *c10::GetAllocator(c10::kCPU), {}, 64, nullptr);
}

void RegisterCuda() {
#ifdef LIVEPOOL_HAVE_CUDA
  const c10::DeviceIndex devices = c10::cuda::device_count();
  if (devices == 0) return;
  c10::Allocator& native = *c10::cuda::CUDACachingAllocator::get();
  Install(DeviceId::Kind::kCuda);
  c10::cuda::CUDACachingAllocator::init(devices);
  RegisterAll("cuda", native, *c10::cuda::CUDACachingAllocator::get(), {DeviceId::Kind::kCuda, 0}, 512,
              c10::cuda::getCurrentCUDAStream(0).stream());
#endif
}

}  // namespace
}  // namespace livepool

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  livepool::RegisterCpu();
  livepool::RegisterCuda();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
