#include "livepool/graph/served_plan.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "allocator/plan/test_problems.h"
#include "allocator/pool/test_tables.h"
#include "livepool/pool/pass.h"

namespace livepool {
namespace {

constexpr PlannerOptions kSearch{.search_nodes = 5000};

// A pass that plays a random problem: each buffer is one op's allocation, served at its birth and freed at its death.
class PlayedProblem {
 public:
  explicit PlayedProblem(std::uint64_t seed)
      : problem_(testing::RandomProblem(seed, {.buffers = 80, .times = 40, .max_size = 50})) {
    for (Buffer& buffer : problem_.buffers) buffer.size *= 64;
    poor_ = MakeBaselinePlan(problem_, BaselineRule::kWholeSlots);
    std::vector<SlotRange> ranges;
    for (std::size_t i = 0; i < problem_.buffers.size(); ++i) {
      ranges.push_back({.offset = poor_.offsets[i], .size = problem_.buffers[i].size});
    }
    table_ = testing::OneOpEach(ranges);
  }

  PlanInService Serve(const std::optional<PlannerOptions>& background) const {
    return PlanInService(problem_, poor_, table_, background);
  }
  const Problem& problem() const { return problem_; }
  const Plan& poor() const { return poor_; }

  // Runs the pass from the plan in service; each buffer's bytes must keep what was written at its birth. Counts misses.
  int Run(PlanInService& service, ArenaPool& pool, unsigned char pattern) const {
    const std::shared_ptr<ServedPlan> plan = service.ForNextPass(pool);
    PlannedArena& arena = pool.Borrow(plan->table().height);
    int wrong = 0;
    {
      Pass pass(pool, arena, plan->BoundTo(arena), nullptr, Fill::kNone);
      std::vector<std::byte*> addresses(problem_.buffers.size());
      for (Time now = 0; now < 100; ++now) {
        for (std::size_t i = 0; i < addresses.size(); ++i) {
          const Buffer& buffer = problem_.buffers[i];
          if (buffer.lifetime.death != now || addresses[i] == nullptr) continue;
          const std::byte expected{static_cast<unsigned char>(pattern + i)};
          wrong += testing::AllBytesAre(addresses[i], buffer.size, expected) ? 0 : 1;
          arena.Free(addresses[i]);
        }
        for (std::size_t i = 0; i < addresses.size(); ++i) {
          const Buffer& buffer = problem_.buffers[i];
          if (buffer.lifetime.birth != now) continue;
          pass.BeginOp(static_cast<OpIndex>(i), nullptr);
          addresses[i] = pass.Serve(buffer.size, nullptr);
          pass.EndOp();
          if (addresses[i] == nullptr) continue;
          std::fill_n(addresses[i], buffer.size, std::byte{static_cast<unsigned char>(pattern + i)});
        }
      }
      wrong += static_cast<int>(pass.misses());
    }
    pool.Return(arena);
    return wrong;
  }

 private:
  Problem problem_;
  Plan poor_;
  SlotTable table_;
};

void WaitForSearch(const PlanInService& service) {
  while (service.Searching()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(PlanInService, ABetterPlanIsServedFromTheNextPassOn) {
  const testing::FakePool fake;
  const PlayedProblem played(1);
  PlanInService service = played.Serve(kSearch);
  EXPECT_EQ(played.Run(service, *fake.pool, 0), 0);
  WaitForSearch(service);
  EXPECT_EQ(played.Run(service, *fake.pool, 0), 0);
  EXPECT_EQ(service.Current()->plan(), MakePlan(played.problem(), kSearch));
  EXPECT_LT(service.Current()->plan().height, played.poor().height);
  // The arena has become as small as the plan.
  EXPECT_EQ(fake.pool->Stats().arena_bytes, AlignUp(service.Current()->plan().height, fake.backend->Granularity()));
}

TEST(PlanInService, APassKeepsThePlanThatItBeganWith) {
  const testing::FakePool fake;
  const PlayedProblem played(1);
  PlanInService service = played.Serve(kSearch);
  const std::shared_ptr<ServedPlan> before = service.ForNextPass(*fake.pool);
  WaitForSearch(service);
  PlannedArena& arena = fake.pool->Borrow(before->table().height);
  {
    Pass pass(*fake.pool, arena, before->BoundTo(arena), nullptr, Fill::kNone);
    pass.BeginOp(0, nullptr);
    std::byte* const address = pass.Serve(played.problem().buffers[0].size, nullptr);
    EXPECT_EQ(address, arena.arena().base() + played.poor().offsets[0]);
    // Another pass begins meanwhile: it has the better plan, and an arena of its own.
    EXPECT_EQ(played.Run(service, *fake.pool, 7), 0);
    EXPECT_NE(service.Current(), before);
    EXPECT_EQ(before->plan(), played.poor());
    arena.Free(address);
  }
  fake.pool->Return(arena);
}

TEST(PlanInService, ATensorThatOutlivesTheSwapKeepsItsBytes) {
  const testing::FakePool fake;
  const PlayedProblem played(1);
  PlanInService service = played.Serve(kSearch);
  std::byte* kept = nullptr;
  PlannedArena* home = nullptr;
  const Bytes size = played.problem().buffers[0].size;
  {
    const std::shared_ptr<ServedPlan> plan = service.ForNextPass(*fake.pool);
    home = &fake.pool->Borrow(plan->table().height);
    Pass pass(*fake.pool, *home, plan->BoundTo(*home), nullptr, Fill::kNone);
    pass.BeginOp(0, nullptr);
    kept = pass.Serve(size, nullptr);
    std::fill_n(kept, size, std::byte{42});
  }
  fake.pool->Return(*home);
  WaitForSearch(service);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(played.Run(service, *fake.pool, 7), 0);
  EXPECT_TRUE(testing::AllBytesAre(kept, size, std::byte{42}));
  home->Free(kept);
  EXPECT_EQ(played.Run(service, *fake.pool, 9), 0);
}

TEST(PlanInService, NoSearchWhereItIsOffOrThePlanIsProvedOptimal) {
  const testing::FakePool fake;
  const PlayedProblem played(1);
  EXPECT_FALSE(played.Serve(std::nullopt).Searching());
  const Problem chain = testing::HandMade("Chain");
  const Plan plan = MakePlan(chain);
  ASSERT_TRUE(plan.ProvedOptimal());
  std::vector<SlotRange> ranges;
  for (std::size_t i = 0; i < chain.buffers.size(); ++i) ranges.push_back({plan.offsets[i], chain.buffers[i].size});
  EXPECT_FALSE(PlanInService(chain, plan, testing::OneOpEach(ranges), kSearch).Searching());
}

TEST(PlanInService, APlanIsDroppedWhileItsSearchRuns) {
  const testing::FakePool fake;
  const Problem endless = testing::RandomProblem(0, {.buffers = 1500, .times = 1500, .max_size = 1'000'000});
  const Plan poor = MakeBaselinePlan(endless, BaselineRule::kWholeSlots);
  std::vector<SlotRange> ranges;
  for (std::size_t i = 0; i < endless.buffers.size(); ++i) ranges.push_back({poor.offsets[i], endless.buffers[i].size});
  const auto start = std::chrono::steady_clock::now();
  {
    PlanInService service(endless, poor, testing::OneOpEach(ranges), PlannerOptions{.search_nodes = INT64_MAX});
    EXPECT_TRUE(service.Searching());
    EXPECT_EQ(service.ForNextPass(*fake.pool)->plan(), poor);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// Passes of several threads while the plan is swapped under them, again and again: for the thread sanitizer above all.
TEST(PlanInService, ThreadsRunPassesWhilePlansAreSwapped) {
  const testing::FakePool fake;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const PlayedProblem played(seed);
    PlanInService service = played.Serve(kSearch);
    std::atomic<int> wrong{0};
    std::atomic<int> swapped{0};
    std::vector<std::thread> threads;
    for (unsigned char t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        // Until some passes have run from the better plan.
        for (int after = 0; after < 3;) {
          wrong += played.Run(service, *fake.pool, static_cast<unsigned char>(31 * t));
          if (service.Current()->plan().height < played.poor().height) ++after;
        }
        ++swapped;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(swapped, 3);
  }
}

}  // namespace
}  // namespace livepool
