// Field fault 9, at the top: every single driver call fails, in turn, while the CUDA allocator serves passes, grants
// peers access and trims. What it cannot serve goes upstream; nothing is lost, nothing leaks.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "allocator/backend/failure_walk.h"
#include "allocator/pool/running_pass.h"
#include "allocator/pool/test_tables.h"
#include "allocator/torch/cuda_on_fakes.h"
#include "cuda_allocator.h"

namespace livepool {
namespace {

using testing::OneOpEach;
using testing::RunningPass;

// A new allocator over numbers, and its device 0.
class World {
 public:
  explicit World(FailureWalk& walk) : walk_(walk) {
    upstream_.total = 1_GiB;
    walk.Step([&] { device().Pool(); });
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() {
    walk_.Heal();
    for (int i = 0; i < 3; ++i) loans_.push_back(std::make_unique<testing::Loan>(pool(), 0));
    for (const auto& loan : loans_) {
      (**loan).arena().Grow(128_MiB);
      (**loan).TrimHeld();
    }
    loans_.clear();
    EXPECT_EQ(upstream_.held(), 0) << "expected: upstream has everything back";
    EXPECT_EQ(allocator_.getDeviceStats(0).reserved_bytes[0].current, 0);
    EXPECT_EQ(pool().Stats().live_bytes, 0);
  }

  CudaDevice& device() { return allocator_.Device(0); }
  ArenaPool& pool() { return device().Pool(); }
  CudaAllocator& allocator() { return allocator_; }

  // Two slots, and one allocation that goes upstream.
  void RunPass() {
    std::unique_ptr<RunningPass> running;
    const SlotTable table = OneOpEach({{0, 3_MiB}, {3_MiB, 5_MiB}});
    walk_.Step([&] { running = std::make_unique<RunningPass>(pool(), table); }, FailureWalk::Idle::kMayGo);
    if (running == nullptr) return;
    std::vector<void*> all;
    for (const OpIndex op : {0, 1}) {
      (*running)->BeginOp(op, nullptr);
      all.push_back(allocator_.raw_alloc_with_stream(static_cast<std::size_t>(op == 0 ? 3_MiB : 5_MiB), nullptr));
      EXPECT_TRUE(walk_.driver().IsAccessible(static_cast<std::byte*>(all.back())));
    }
    EXPECT_EQ((*running)->hits(), 2);
    all.push_back(allocator_.raw_alloc_with_stream(100, nullptr));
    EXPECT_EQ(pool().Find(all.back()), nullptr);
    EXPECT_EQ(allocator_.getDeviceStats(0).reserved_bytes[0].current, walk_.driver().mapped());
    running.reset();
    for (void* const address : all) allocator_.raw_delete(address);
  }

 private:
  FailureWalk& walk_;
  // Immortal, as in a process.
  NumbersUpstream& upstream_ = *new NumbersUpstream;
  CudaAllocator& allocator_ = *new CudaAllocator(upstream_);
  std::vector<std::unique_ptr<testing::Loan>> loans_;
};

TEST(CudaFailureTest, PassesAndTrims) {
  WalkOverEveryCall({}, /*at_least=*/40, [](FailureWalk& walk) {
    World world(walk);
    world.RunPass();
    world.allocator().emptyCache({0, 0});
    world.RunPass();
    world.RunPass();
  });
}

TEST(CudaFailureTest, PeersGetAccess) {
  WalkOverEveryCall({}, /*at_least=*/40, [](FailureWalk& walk) {
    World world(walk);
    world.RunPass();
    walk.Step([&] { world.allocator().enablePeerAccess(1, 0); });
    world.allocator().emptyCache({0, 0});
    world.RunPass();
  });
}

// Field fault 3, 8: upstream runs out, the idle arena goes, and the request is served.
TEST(CudaFailureTest, UpstreamGetsTheIdleArena) {
  WalkOverEveryCall({}, /*at_least=*/40, [](FailureWalk& walk) {
    World world(walk);
    world.RunPass();
    EXPECT_THROW(world.allocator().raw_alloc(std::size_t{1} << 50), c10::OutOfMemoryError);
    void* const small = world.allocator().raw_alloc(100);
    EXPECT_NE(small, nullptr);
    world.allocator().raw_delete(small);
    world.RunPass();
  });
}

}  // namespace
}  // namespace livepool
