// Field fault 13 in C++: tensors, a graph and a slot's tensor in globals, statics, thread storage and threads that
// still run when main returns. ctest expects exit code 0 and no output.
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "livepool/livepool.h"
#include "livepool/pool/pass.h"

namespace {

at::Tensor global;
std::shared_ptr<livepool::ExecGraph> global_graph;
thread_local at::Tensor in_main_thread;

livepool::Tensors Network(const livepool::Tensors& in) { return {in[0].mm(in[0]).relu().add(in[0]).softmax(-1)}; }
at::Tensor Ones() { return at::ones({16, 16}); }

}  // namespace

int main() {
  const c10::InferenceMode inference;
  static at::Tensor in_a_static = Ones();  // made before livepool is there
  livepool::Install(livepool::DeviceId::Kind::kHost);
  static at::Tensor in_another_static = Ones();
  global_graph = livepool::Capture(Network, {Ones()});
  global = global_graph->Replay({Ones().mul(2)})[0];
  in_main_thread = global_graph->Replay({Ones().mul(3)})[0];

  // Tensors that take slots and outlive the pass.
  static std::vector<c10::DataPtr> slots;
  livepool::ArenaPool& pool = livepool::PoolOf({});
  livepool::PlannedArena& arena = pool.Borrow(256);
  const livepool::SlotTable table{.first_of_op = {0, 2},
                                  .allocations = {{.size = 128, .range = 0}, {.size = 128, .range = 1}},
                                  .ranges = {{.offset = 0, .size = 128}, {.offset = 128, .size = 128}},
                                  .height = 256};
  livepool::BoundTable* const bound = arena.Bind(table);
  {
    livepool::Pass pass(pool, arena, *bound, nullptr, livepool::Fill::kNan);
    pass.BeginOp(0, nullptr);
    for (int i = 0; i < 2; ++i) slots.push_back(c10::GetAllocator(c10::kCPU)->allocate(128));
    if (pass.hits() != 2) return 1;
  }
  pool.Return(arena);
  static thread_local c10::DataPtr slot_of_this_thread = std::move(slots.back());

  std::atomic<bool> ready{false};
  std::thread([&ready] {
    const c10::InferenceMode too;
    static thread_local at::Tensor in_that_thread = global_graph->Replay({Ones()})[0];
    ready = true;
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
  }).detach();
  while (!ready) std::this_thread::yield();
  return 0;
}
