// The whole way on random graphs: trace, lifetimes, in-place pairs, packing, plan, slot table, and a replay
// through the pool in which every op looks at the bytes of its inputs. A failure prints its seed;
// GRAPH_TEST_SEED=17 replays one, GRAPH_TEST_GRAPHS=100000 runs longer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "allocator/pool/test_tables.h"
#include "graph_capture/test_graphs.h"
#include "livepool/graph/in_place.h"
#include "livepool/graph/packing.h"
#include "livepool/plan/planner.h"
#include "livepool/plan/validate.h"
#include "livepool/pool/pass.h"

namespace livepool {
namespace {

using testing::FakePool;
using testing::GraphBuilder;
using testing::Recorded;
using testing::Step;
using testing::Steps;
using Kind = Step::Kind;

std::int64_t FromEnvironment(const char* name, std::int64_t otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : std::atoll(value);
}

struct RandomGraph {
  OpGraph graph;
  Steps steps;
};

// Chains of pointwise and other ops, with views, mutation, several outputs, workspaces, and outputs that
// nobody reads.
RandomGraph MakeRandomGraph(std::mt19937_64& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  GraphBuilder g;
  Steps steps;
  std::vector<ValueId> alive{g.Tensor({16, 16}, StorageKind::kInput), g.Tensor({32}, StorageKind::kState)};
  const auto pick = [&] { return below(3) > 0 ? alive.back() : alive[below(alive.size())]; };
  const auto random_sizes = [&] {
    return std::vector<std::int64_t>{static_cast<std::int64_t>(1 + below(8)), static_cast<std::int64_t>(1 + below(24))};
  };
  std::int32_t workspaces = 0;
  for (std::size_t ops = 1 + below(60); ops > 0; --ops) {
    std::vector<Step>& step = steps.emplace_back();
    const auto allocate = [&](ValueId id) {
      const StorageId storage = g.graph.value(id).storage;
      step.push_back({Kind::kAllocStorage, storage, g.graph.storage(storage).size});
    };
    const ValueId input = pick();
    const Value& shape = g.graph.value(input);
    switch (below(8)) {
      case 0: {  // a view, perhaps of all bytes in another order
        const ValueId view = below(2) == 0
                                 ? g.View(input, {shape.numel() > 1 ? shape.numel() / 2 : 1}, {1}, shape.storage_offset)
                                 : g.View(input, {shape.sizes.rbegin(), shape.sizes.rend()},
                                          {shape.strides.rbegin(), shape.strides.rend()}, shape.storage_offset);
        g.Op("view", {input}, {view});
        alive.push_back(view);
        break;
      }
      case 1: {  // mutation
        g.Op("add_", {input, pick()}, {input}, {.writes = {input}, .pointwise = true});
        break;
      }
      case 2: {  // several outputs, and workspaces that come and go
        std::vector<ValueId> inputs{input, pick()}, outputs;
        std::vector<std::int32_t> open;
        for (std::size_t k = 1 + below(3); k > 0; --k) {
          if (below(2) == 0) {
            step.push_back({Kind::kAllocWorkspace, workspaces, static_cast<Bytes>(1 + below(2000))});
            open.push_back(workspaces++);
          }
          outputs.push_back(g.Tensor(random_sizes()));
          allocate(outputs.back());
          if (!open.empty() && below(2) == 0) {
            step.push_back({Kind::kFreeWorkspace, open.back(), 0});
            open.pop_back();
          }
        }
        for (; !open.empty(); open.pop_back()) step.push_back({Kind::kFreeWorkspace, open.back(), 0});
        g.Op("fused", inputs, outputs);
        alive.insert(alive.end(), outputs.begin(), outputs.end());
        break;
      }
      case 3: {  // new sizes
        const ValueId output = g.Tensor(random_sizes());
        g.Op("matmul", {input, pick()}, {output});
        allocate(output);
        alive.push_back(output);
        break;
      }
      default: {  // pointwise: the output is like an input
        std::vector<ValueId> inputs{input};
        for (std::size_t k = below(3); k > 0; --k) inputs.push_back(pick());
        Value like = shape;
        like.storage = static_cast<StorageId>(g.graph.storages.size());
        like.storage_offset = 0;
        if (!like.NonOverlappingAndDense()) like.strides = testing::Contiguous(like.sizes);
        g.graph.storages.push_back({.size = like.DenseBytes()});
        const ValueId output = g.Add(like);
        g.Op("mul", inputs, {output}, {.pointwise = true});
        allocate(output);
        alive.push_back(output);
      }
    }
  }
  for (std::size_t k = below(3); k > 0; --k) g.graph.outputs.push_back(pick());
  return {.graph = std::move(g.graph), .steps = std::move(steps)};
}

// The planned table of a graph, made as ExecGraph makes it.
struct Planned {
  SlotTable table;
  std::vector<InPlacePair> pairs;
  std::vector<ValueId> in_place_input;
  std::int64_t planned = 0;  // allocations that are not foreseen to go upstream
};

Planned MakePlanned(const RandomGraph& random, Bytes alignment) {
  const Recorded recorded = testing::Record(random.graph, random.steps);
  const auto lifetimes = testing::LifetimesOf(random.graph, recorded);
  Planned result;
  result.pairs = FindInPlacePairs(random.graph, lifetimes, recorded.trace);
  const Packing packing = MakePacking(lifetimes, result.pairs, recorded.trace, alignment);
  const Plan plan = MakePlan(packing.problem);
  CheckPlan(packing.problem, plan);
  result.table = MakeSlotTable(packing, plan, result.pairs, recorded.trace, alignment);
  result.table.Check();
  result.in_place_input.assign(random.graph.ops.size(), -1);
  for (const InPlacePair& pair : result.pairs) result.in_place_input[static_cast<std::size_t>(pair.op)] = pair.input;
  for (const PlannedAllocation& each : result.table.allocations)
    result.planned += each.range != PlannedAllocation::kUpstream;
  return result;
}

// Runs the ops as the executor does, on memory that the pass serves or `new` does.
class Replay {
 public:
  struct Holder {  // somebody who keeps storages longer than the graph says
    std::mt19937_64* random = nullptr;
    bool other_thread = false;
  };

  Replay(const RandomGraph& random, const Planned& planned, ArenaPool& pool, Pass& pass, Holder holder)
      : graph_(random.graph),
        steps_(random.steps),
        planned_(planned),
        pool_(pool),
        pass_(pass),
        holder_(holder),
        storages_(graph_.storages.size()) {
    for (std::size_t i = 0; i < storages_.size(); ++i) {
      keeps_.push_back(holder_.random != nullptr && (*holder_.random)() % 4 == 0);
      if (graph_.storages[i].kind == StorageKind::kIntermediate) continue;
      storages_[i] = {.address = New(graph_.storages[i].size), .size = graph_.storages[i].size};
      Write(storages_[i]);
    }
  }
  ~Replay() {
    for (Memory& each : storages_) Free(each);
    for (Memory& each : kept_) FreeKept(each);
  }

  void Run() {
    const auto last_use_of_values = graph_.LastUseOfValues();
    std::vector<int> holders(graph_.storages.size(), 0);
    std::vector<bool> seen(graph_.values.size(), false);
    const auto drops = testing::DropsOf(graph_);
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      const Op& op = graph_.ops[i];
      pass_.BeginOp(static_cast<OpIndex>(i), Giver(planned_.in_place_input[i], holders));
      RunSteps(i);
      pass_.EndOp();
      if (::testing::Test::HasFatalFailure()) return;
      for (const ValueId id : op.outputs) {
        if (!seen[static_cast<std::size_t>(id)]) ++holders[static_cast<std::size_t>(graph_.value(id).storage)];
        seen[static_cast<std::size_t>(id)] = true;
      }
      for (std::size_t value = 0; value < graph_.values.size(); ++value) {
        if (last_use_of_values[value] == static_cast<OpIndex>(i) && seen[value])
          --holders[static_cast<std::size_t>(graph_.values[value].storage)];
      }
      for (const StorageId id : drops[i]) Drop(static_cast<std::size_t>(id));
    }
  }

 private:
  struct Memory {
    std::byte* address = nullptr;
    Bytes size = 0;
    unsigned char pattern = 0;
  };

  std::byte* New(Bytes size) { return static_cast<std::byte*>(::operator new(static_cast<std::size_t>(size))); }
  std::byte* Allocate(Bytes size) {
    std::byte* const served = pass_.Serve(size, nullptr);
    const auto alignment = static_cast<std::uintptr_t>(pool_.backend().Alignment());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(served) % alignment, 0U) << "row 17 of the field's faults";
    return served != nullptr ? served : New(size);
  }
  void Free(Memory& memory) {
    if (memory.address == nullptr) return;
    PlannedArena* const arena = pool_.Find(memory.address);
    arena != nullptr ? arena->Free(memory.address) : ::operator delete(memory.address);
    memory.address = nullptr;
  }
  void FreeKept(Memory& memory) {
    EXPECT_TRUE(Intact(memory)) << "overwritten while it was kept";
    holder_.other_thread ? std::thread([&] { Free(memory); }).join() : Free(memory);
  }
  void Write(Memory& memory) {
    memory.pattern = ++last_pattern_;
    std::memset(memory.address, memory.pattern, static_cast<std::size_t>(memory.size));
  }
  static bool Intact(const Memory& memory) {
    return testing::AllBytesAre(memory.address, memory.size, std::byte{memory.pattern});
  }

  void Drop(std::size_t storage) {
    Memory& memory = storages_[storage];
    if (keeps_[storage]) {
      kept_.push_back(memory);
      memory.address = nullptr;
    }
    Free(memory);
    while (!kept_.empty() && (*holder_.random)() % 2 == 0) {
      FreeKept(kept_.back());
      kept_.pop_back();
    }
  }

  // Where the storage of `input` starts, if one value and nobody else holds it.
  const void* Giver(ValueId input, const std::vector<int>& holders) {
    if (input < 0) return nullptr;
    const auto storage = static_cast<std::size_t>(graph_.value(input).storage);
    EXPECT_EQ(holders[storage], 1) << "a pair whose input is never held alone";
    given_ = storage;
    return keeps_[storage] ? nullptr : storages_[storage].address;
  }

  void CheckInputs(const Op& op, StorageId but) {
    for (const ValueId id : op.inputs) {
      const StorageId storage = graph_.value(id).storage;
      // The giver itself is read before each of its places is written; another view of it would not be.
      if (storage == but && graph_.value(id).SameGeometry(graph_.value(planned_.in_place_input[at_]))) continue;
      ASSERT_TRUE(Intact(storages_[static_cast<std::size_t>(storage)])) << op.name << " at " << at_;
    }
  }

  void RunSteps(std::size_t i) {
    const Op& op = graph_.ops[i];
    at_ = i;
    std::vector<StorageId> made;
    for (const Step& step : steps_[i]) {
      const auto id = static_cast<std::size_t>(step.id);
      switch (step.kind) {
        case Kind::kAllocWorkspace:
          workspaces_[step.id] = {.address = Allocate(step.size), .size = step.size};
          Write(workspaces_[step.id]);
          break;
        case Kind::kFreeWorkspace:
          ASSERT_TRUE(Intact(workspaces_[step.id])) << "a workspace of " << op.name;
          Free(workspaces_[step.id]);
          break;
        case Kind::kAllocStorage:
          storages_[id] = {.address = Allocate(step.size), .size = step.size};
          made.push_back(step.id);
          if (!op.pointwise) Write(storages_[id]);  // other ops may write at any time
      }
    }
    CheckInputs(op, -1);
    if (!op.pointwise) {
      for (const StorageId id : made) ASSERT_TRUE(Intact(storages_[static_cast<std::size_t>(id)]));
      return;
    }
    for (const StorageId id : made) Write(storages_[static_cast<std::size_t>(id)]);
    const bool in_place = planned_.in_place_input[i] >= 0 && !made.empty() &&
                          storages_[given_].address == storages_[static_cast<std::size_t>(made[0])].address;
    CheckInputs(op, in_place ? static_cast<StorageId>(given_) : -1);
    for (const ValueId id : op.writes) Write(storages_[static_cast<std::size_t>(graph_.value(id).storage)]);
  }

  const OpGraph& graph_;
  const Steps& steps_;
  const Planned& planned_;
  ArenaPool& pool_;
  Pass& pass_;
  Holder holder_;
  std::vector<Memory> storages_;
  std::map<std::int32_t, Memory> workspaces_;
  std::vector<bool> keeps_;  // of each storage, whether the holder keeps it
  std::vector<Memory> kept_;
  std::size_t given_ = 0;  // the storage of the current op's giver
  std::size_t at_ = 0;
  unsigned char last_pattern_ = 0;
};

template <typename Test>
void ForRandomGraphs(Test test) {
  const std::int64_t only = FromEnvironment("GRAPH_TEST_SEED", -1);
  const std::int64_t first = only < 0 ? 0 : only;
  const std::int64_t end = only < 0 ? FromEnvironment("GRAPH_TEST_GRAPHS", 400) : only + 1;
  for (std::int64_t seed = first; seed < end && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("GRAPH_TEST_SEED=" + std::to_string(seed));
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    test(MakeRandomGraph(random), random);
  }
}

TEST(ReplayRandomTest, ServesEverythingThatIsPlannedAndOverwritesNothing) {
  const FakePool fake;
  std::int64_t in_place = 0;
  ForRandomGraphs([&](const RandomGraph& graph, std::mt19937_64&) {
    const Planned planned = MakePlanned(graph, fake.backend->Alignment());
    in_place += static_cast<std::int64_t>(planned.pairs.size());
    PlannedArena& arena = fake.pool->Borrow(planned.table.height);
    BoundTable* const bound = arena.Bind(planned.table);
    for (const Fill fill : {Fill::kNone, Fill::kNan}) {
      Pass pass(*fake.pool, arena, *bound, nullptr, fill);
      Replay(graph, planned, *fake.pool, pass, {}).Run();
      EXPECT_EQ(pass.hits(), planned.planned);
      EXPECT_EQ(pass.misses(), 0);
      EXPECT_TRUE(arena.CheckInvariants());
    }
    EXPECT_EQ(arena.LiveBytes(), 0);
    arena.Unbind(bound);
    fake.pool->Return(arena);
  });
  EXPECT_GT(in_place, FromEnvironment("GRAPH_TEST_SEED", -1) < 0 ? 1000 : -1) << "the walk has been everywhere";
  EXPECT_THAT(fake.backend->misuse(), ::testing::IsEmpty());
}

// Field fault 1: same sizes and order, other frees. The plan is wrong then, and nothing else is.
class DivergenceTest : public ::testing::TestWithParam<bool> {};

TEST_P(DivergenceTest, CostsMissesAndNothingElse) {
  const FakePool fake;
  std::int64_t misses = 0, hits = 0;
  ForRandomGraphs([&](const RandomGraph& graph, std::mt19937_64& random) {
    if (GetParam() && random() % 4 > 0) return;  // threads take their time
    const Planned planned = MakePlanned(graph, fake.backend->Alignment());
    PlannedArena& arena = fake.pool->Borrow(planned.table.height);
    BoundTable* const bound = arena.Bind(planned.table);
    {
      Pass pass(*fake.pool, arena, *bound, nullptr, Fill::kNone);
      Replay(graph, planned, *fake.pool, pass, {.random = &random, .other_thread = GetParam()}).Run();
      EXPECT_EQ(pass.hits() + pass.misses(), planned.planned);
      misses += pass.misses();
      hits += pass.hits();
      EXPECT_TRUE(arena.CheckInvariants());
    }
    arena.Unbind(bound);
    fake.pool->Return(arena);
    EXPECT_EQ(fake.pool->Stats().live_bytes, 0);
  });
  if (FromEnvironment("GRAPH_TEST_SEED", -1) >= 0) return;
  EXPECT_GT(misses, 100);
  EXPECT_GT(hits, misses);
}

INSTANTIATE_TEST_SUITE_P(Frees, DivergenceTest, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "ByAnotherThread" : "ByThisThread"; });

}  // namespace
}  // namespace livepool
