// Field fault 9, above the backend: every single driver call fails, in turn, while a pool lends, grows and trims
// arenas and passes run on them. What lives keeps its memory, the next request is served, deleters and destructors
// are silent.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "allocator/backend/failure_walk.h"
#include "allocator/pool/running_pass.h"
#include "allocator/pool/test_tables.h"
#include "livepool/backend/cuda_backend.h"

namespace livepool {
namespace {

using testing::Loan;
using testing::OneOpEach;
using testing::RunningPass;

// A pool on the fake driver, in a scenario whose steps may fail.
class World {
 public:
  explicit World(FailureWalk& walk) : walk_(walk) {
    walk.Step([&] {
      pool_ = &testing::Immortal(new ArenaPool({DeviceId::Kind::kCuda, 0},
                                               std::make_unique<CudaBackend>(FakeDriver::table(), 0), kReserve));
    });
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  // All memory goes back, also what the driver had refused to unmap: it is mapped over, then unmapped.
  ~World() {
    walk_.Heal();
    walk_.driver().set_capacity(1_GiB);
    for (std::byte* const slot : live_) pool_->Find(slot)->Free(slot);
    std::vector<std::unique_ptr<Loan>> all;
    for (int i = 0; i < kArenas; ++i) {
      all.push_back(std::make_unique<Loan>(*pool_, 0));
      (**all.back()).arena().Grow(kReserve);
      (**all.back()).TrimHeld();
    }
    all.clear();
    EXPECT_EQ(pool_->Stats().arena_bytes, 0);
    EXPECT_EQ(pool_->Stats().live_bytes, 0);
  }

  // An arena with `height` bytes, which the failure may cost the idle ones.
  std::unique_ptr<Loan> Borrow(Bytes height) {
    std::unique_ptr<Loan> loan;
    walk_.Step([&] { loan = std::make_unique<Loan>(*pool_, height); }, FailureWalk::Idle::kMayGo);
    if (loan == nullptr) return nullptr;  // the step has failed the test
    EXPECT_GE((*loan)->arena().mapped(), height);
    for (Bytes at = 0; at < height; at += 2_MiB) ExpectMemory((*loan)->arena().base() + at);
    Look();
    return loan;
  }
  // A slot that lives until the end.
  void Occupy(PlannedArena& arena, Bytes offset, Bytes size) {
    live_.push_back(arena.Serve(arena.Bind(OneOpEach({{offset, size}}))->entries[0], false));
    EXPECT_NE(live_.back(), nullptr);
  }
  void Trim() {
    walk_.Step([&] { pool_->Trim(); }, FailureWalk::Idle::kMayGo);
    Look();
  }
  // One pass of two slots, served and freed.
  void RunPass(Fill fill) {
    const SlotTable table = OneOpEach({{0, 3_MiB}, {3_MiB, 3_MiB}});
    std::unique_ptr<RunningPass> running;
    walk_.Step([&] { running = std::make_unique<RunningPass>(*pool_, table, nullptr, fill); },
               FailureWalk::Idle::kMayGo);
    if (running == nullptr) return;
    for (const OpIndex op : {0, 1, 0}) {
      (*running)->BeginOp(op, nullptr);
      std::byte* const slot = (*running)->Serve(3_MiB, nullptr);
      ASSERT_NE(slot, nullptr);
      ExpectMemory(slot);
      ExpectMemory(slot + 3_MiB - 1);
      running->arena().Free(slot);
    }
    EXPECT_EQ((*running)->misses(), 0);
    running.reset();
    Look();
  }

 private:
  // What lives has memory, whatever has failed.
  void Look() {
    for (const std::byte* const slot : live_) ExpectMemory(slot);
  }
  void ExpectMemory(const std::byte* address) {
    EXPECT_TRUE(walk_.driver().IsAccessible(address)) << "expected: memory at " << static_cast<const void*>(address);
  }

  static constexpr Bytes kReserve = 32_MiB;
  static constexpr int kArenas = 4;  // at least as many as a scenario makes

  FailureWalk& walk_;
  ArenaPool* pool_ = nullptr;
  std::vector<std::byte*> live_;
};

TEST(PoolFailureTest, GrowTrimAndGrowAgain) {
  WalkOverEveryCall({}, /*at_least=*/50, [](FailureWalk& walk) {
    World world(walk);
    world.Borrow(4_MiB);
    world.Borrow(10_MiB);
    world.Trim();
    world.Borrow(8_MiB);
    world.Borrow(12_MiB);
  });
}

TEST(PoolFailureTest, SeveralArenasOneOfThemOccupied) {
  WalkOverEveryCall({}, /*at_least=*/50, [](FailureWalk& walk) {
    World world(walk);
    {
      const auto occupied = world.Borrow(8_MiB);
      world.Occupy(**occupied, 2_MiB, 1_MiB);
    }
    {
      const auto a = world.Borrow(6_MiB);
      const auto b = world.Borrow(4_MiB);
      world.Trim();
    }
    world.Trim();
    world.Borrow(10_MiB);
  });
}

// Field fault 8: what is idle goes before anything fails, and a failure on that way loses nothing. Single failures
// only: pages that a driver goes on refusing to unmap make no room.
TEST(PoolFailureTest, IdleMemoryMakesRoom) {
  const auto scenario = [](FailureWalk& walk) {
    World world(walk);
    {
      const auto idle = world.Borrow(30_MiB);
      world.Occupy(**idle, 0, 1_MiB);
    }
    world.Borrow(30_MiB);
  };
  WalkOverEveryCall({.capacity = 48_MiB}, /*at_least=*/50, scenario, {FailureWalk::Kind::kOnce});
}

TEST(PoolFailureTest, PassesThatFillTheirSlots) {
  WalkOverEveryCall({}, /*at_least=*/50, [](FailureWalk& walk) {
    World world(walk);
    world.RunPass(Fill::kNan);
    world.Trim();
    world.RunPass(Fill::kZero);
    {
      const auto squatted = world.Borrow(4_MiB);
      world.Occupy(**squatted, 0, 1_MiB);
    }
    world.RunPass(Fill::kNan);
  });
}

}  // namespace
}  // namespace livepool
