// The CPU allocator as torch sees it, without and with a pass.
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "livepool/pool/pass.h"
#include "livepool/torch/install.h"

namespace livepool {
namespace {

bool InArena(const void* address) { return PoolOf({}).Find(address) != nullptr; }

class CpuAllocatorTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { Install(DeviceId::Kind::kHost); }

  c10::Allocator& allocator() { return *c10::GetAllocator(c10::kCPU); }

  // One op with two allocations of 100 bytes each, side by side.
  const SlotTable table_{.first_of_op = {0, 2},
                         .allocations = {{.size = 128, .range = 0}, {.size = 128, .range = 1}},
                         .ranges = {{.offset = 0, .size = 128}, {.offset = 128, .size = 128}},
                         .height = 256};
};

TEST_F(CpuAllocatorTest, EveryDataPtrHasTheOneDeleterAndIsItsOwnContext) {
  for (const std::size_t size : {0U, 1U, 511U, 82262U, (2U << 20) + 1}) {
    const c10::DataPtr data = allocator().allocate(size);
    EXPECT_EQ(data.get_deleter(), allocator().raw_deleter());
    EXPECT_EQ(data.get(), data.get_context());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data.get()) % 64, 0u) << size;
  }
}

TEST_F(CpuAllocatorTest, RawAllocationsWork) {
  // What oneDNN calls for its scratchpads.
  void* address = allocator().raw_allocate(1000);
  ASSERT_NE(address, nullptr);
  EXPECT_FALSE(InArena(address));
  allocator().raw_deallocate(address);
}

TEST_F(CpuAllocatorTest, EmptyRequestsAreNeitherServedNorCounted) {
  ArenaPool& pool = PoolOf({});
  PlannedArena& arena = pool.Borrow(table_.height);
  BoundTable* bound = arena.Bind(table_);
  {
    Pass pass(pool, arena, *bound, nullptr, Fill::kNone);
    pass.BeginOp(0, nullptr);
    const c10::DataPtr none = allocator().allocate(0);
    const c10::DataPtr none_again = allocator().allocate(0);
    const c10::DataPtr first = allocator().allocate(100);
    EXPECT_EQ(none.get(), nullptr);
    EXPECT_TRUE(InArena(first.get()));
    EXPECT_EQ(pass.hits(), 1);
    EXPECT_EQ(pass.misses(), 0);
  }
  arena.Unbind(bound);
  pool.Return(arena);
}

// What torch.profiler installs: the memory events of this thread.
struct MemoryEvents final : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void* address, int64_t change, size_t, size_t, c10::Device) override {
    events.emplace_back(address, change);
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::vector<std::pair<void*, int64_t>> events;
};

TEST_F(CpuAllocatorTest, TheProfilerHearsOfSlotsAsOfEverythingElse) {
  ArenaPool& pool = PoolOf({});
  PlannedArena& arena = pool.Borrow(table_.height);
  BoundTable* bound = arena.Bind(table_);
  const auto events = std::make_shared<MemoryEvents>();
  void* slot = nullptr;
  void* other = nullptr;
  {
    const c10::DebugInfoGuard profiling(c10::DebugInfoKind::PROFILER_STATE, events);
    Pass pass(pool, arena, *bound, nullptr, Fill::kNone);
    pass.BeginOp(0, nullptr);
    c10::DataPtr data = allocator().allocate(100);
    slot = data.get();
    data.clear();
    pass.EndOp();
    data = allocator().allocate(200);  // a miss
    other = data.get();
  }
  EXPECT_TRUE(InArena(slot));
  EXPECT_FALSE(InArena(other));
  EXPECT_THAT(events->events, ::testing::ElementsAre(std::pair(slot, 100), std::pair(slot, -100), std::pair(other, 200),
                                                     std::pair(other, -200)));
  arena.Unbind(bound);
  pool.Return(arena);
}

TEST_F(CpuAllocatorTest, AnotherThreadIsNotServedFromThePass) {
  ArenaPool& pool = PoolOf({});
  PlannedArena& arena = pool.Borrow(table_.height);
  BoundTable* bound = arena.Bind(table_);
  {
    Pass pass(pool, arena, *bound, nullptr, Fill::kNone);
    pass.BeginOp(0, nullptr);
    std::thread([&] { EXPECT_FALSE(InArena(allocator().allocate(100).get())); }).join();
    EXPECT_EQ(pass.hits() + pass.misses(), 0);
    c10::DataPtr slot = allocator().allocate(100);
    EXPECT_TRUE(InArena(slot.get()));
    std::thread([moved = std::move(slot)]() mutable { moved.clear(); }).join();  // a free from elsewhere
    pass.BeginOp(0, nullptr);
    EXPECT_TRUE(InArena(allocator().allocate(100).get()));  // its place is free again
  }
  arena.Unbind(bound);
  pool.Return(arena);
}

}  // namespace
}  // namespace livepool
