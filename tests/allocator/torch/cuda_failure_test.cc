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
    upstream_.taken_by_others = [&walk] { return walk.driver().mapped(); };
    walk.Step([&] { device().Pool(); });
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() {
    walk_.Heal();
    upstream_.taken_by_others = nullptr;
    for (int i = 0; i < 3; ++i) loans_.push_back(std::make_unique<testing::Loan>(pool(), 0));
    for (const auto& loan : loans_) (**loan).arena().Grow(128_MiB);
    loans_.clear();
    pool().Trim();
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

// Field faults 3, 8: upstream runs out, the idle arena goes, and the request is served. Single failures only: pages
// that a driver goes on refusing to unmap make no room.
TEST(CudaFailureTest, UpstreamGetsTheIdleArena) {
  const auto scenario = [](FailureWalk& walk) {
    World world(walk);
    world.RunPass();
    EXPECT_EQ(walk.driver().mapped(), 8_MiB);
    void* const large = world.allocator().raw_alloc(static_cast<std::size_t>(1_GiB - 2_MiB));
    EXPECT_NE(large, nullptr) << "expected: 8 MiB of idle arena go, so that 1 GiB less 2 MiB fit";
    EXPECT_LE(walk.driver().mapped(), 2_MiB);
    EXPECT_THROW(world.allocator().raw_alloc(static_cast<std::size_t>(4_MiB)), c10::OutOfMemoryError);
    void* const small = world.allocator().raw_alloc(100);
    EXPECT_NE(small, nullptr) << "expected: the next small request is served";
    world.allocator().raw_delete(small);
    world.allocator().raw_delete(large);
    world.RunPass();
  };
  WalkOverEveryCall({}, /*at_least=*/40, scenario, {FailureWalk::Kind::kOnce});
}

// Field fault 10. A capture is begun by torch, which opens a pool first, or with the CUDA runtime.
TEST(CudaFailureTest, WhileAGraphIsCapturedNothingIsFreedOrWaitedFor) {
  constexpr int kNever = 1'000'000;
  for (const bool by_torch : {true, false}) {
    SCOPED_TRACE(by_torch ? "torch's capture" : "the runtime's capture");
    FailureWalk walk({}, kNever, FailureWalk::Kind::kOnce);
    World world(walk);
    world.RunPass();
    const int unmaps = walk.driver().calls("MemUnmap");
    const int waits = FakeRuntime::waits;
    if (by_torch) world.allocator().beginAllocateToPool(0, {0, 7}, [](cudaStream_t) { return true; });
    FakeRuntime::capturing = true;
    EXPECT_THROW(world.allocator().raw_alloc(static_cast<std::size_t>(1_GiB)), c10::OutOfMemoryError);
    void* const small = world.allocator().raw_alloc(100);
    EXPECT_NE(small, nullptr);
    EXPECT_EQ(world.device().Trim(), 0);
    EXPECT_EQ(walk.driver().calls("MemUnmap"), unmaps) << "expected: nothing is unmapped";
    EXPECT_EQ(FakeRuntime::waits, waits) << "expected: the device is not waited for";
    world.allocator().raw_delete(small);
    if (by_torch) world.allocator().endAllocateToPool(0, {0, 7});
    FakeRuntime::capturing = false;
    EXPECT_EQ(world.device().Trim(), 8_MiB) << "expected: after the capture a trim works";
  }
}

}  // namespace
}  // namespace livepool
