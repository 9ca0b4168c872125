// The CPU allocator as torch sees it, without and with a pass.
#include <c10/core/Allocator.h>
#include <c10/util/Exception.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "allocator/allocator_conformance.h"
#include "allocator/pool/test_tables.h"
#include "allocator/torch/c10_block.h"
#include "allocator/torch/slot_free_sink.h"
#include "livepool/torch/install.h"

namespace livepool {
namespace {

struct CpuHarness {
  static constexpr Bytes kAlignment = 64;
  static constexpr bool kReadable = true;
  using Refusal = c10::OutOfMemoryError;
  static std::string WhyNot() { return ""; }

  CpuHarness() { Install(DeviceId::Kind::kHost); }
  ArenaPool& pool() { return PoolOf({}); }
  c10::Allocator& allocator() { return *c10::GetAllocator(c10::kCPU); }
  Block Allocate(Bytes size) { return OwnedBy(allocator().allocate(static_cast<std::size_t>(size))); }
  // What oneDNN calls for its scratchpads.
  void* RawAllocate(Bytes size) { return allocator().raw_allocate(static_cast<std::size_t>(size)); }
  void RawFree(void* address) { allocator().raw_deallocate(address); }
  void Fill(void* address, Bytes size, unsigned char value) {
    std::memset(address, value, static_cast<std::size_t>(size));
  }
  std::vector<std::byte> Read(const void* address, Bytes size) {
    const auto* const begin = static_cast<const std::byte*>(address);
    return {begin, begin + size};
  }
  void BeginPass(PlannedArena&) {}
  void EndPass(PlannedArena&) {}
  std::vector<std::string> Misuse() { return {}; }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Cpu, AllocatorConformance, CpuHarness);

TEST(CpuAllocatorTest, EveryDataPtrHasTheOneDeleter) {
  Install(DeviceId::Kind::kHost);
  c10::Allocator& allocator = *c10::GetAllocator(c10::kCPU);
  const auto expect_it = [&] {
    for (const std::size_t size : {0U, 100U}) {
      EXPECT_EQ(allocator.allocate(size).get_deleter(), allocator.raw_deleter()) << size;
    }
  };
  expect_it();
  testing::RunningPass running(PoolOf({}), testing::OneOpEach({{0, 128}}));
  running->BeginOp(0, nullptr);
  expect_it();
  EXPECT_EQ(running->hits(), 1);
}

// What torch.profiler installs: the memory events of this thread.
struct MemoryEvents final : c10::MemoryReportingInfoBase {
  void reportMemoryUsage(void* address, int64_t change, size_t, size_t, c10::Device) override {
    events.emplace_back(address, change);
  }
  bool memoryProfilingEnabled() const override { return true; }
  std::vector<std::pair<void*, int64_t>> events;
};

TEST(CpuAllocatorTest, TheProfilerHearsOfSlotsAsOfEverythingElse) {
  Install(DeviceId::Kind::kHost);
  c10::Allocator& allocator = *c10::GetAllocator(c10::kCPU);
  const auto events = std::make_shared<MemoryEvents>();
  const c10::DebugInfoGuard profiling(c10::DebugInfoKind::PROFILER_STATE, events);
  testing::RunningPass running(PoolOf({}), testing::OneOpEach({{0, 128}}));
  running->BeginOp(0, nullptr);
  c10::DataPtr data = allocator.allocate(100);
  void* const slot = data.get();
  data.clear();
  running->EndOp();
  data = allocator.allocate(200);  // a miss
  void* const other = data.get();
  data.clear();
  EXPECT_NE(PoolOf({}).Find(slot), nullptr);
  EXPECT_EQ(PoolOf({}).Find(other), nullptr);
  EXPECT_THAT(events->events, ::testing::ElementsAre(std::pair(slot, 100), std::pair(slot, -100), std::pair(other, 200),
                                                     std::pair(other, -200)));
}

// Who records a run that slots serve must know when they are free.
TEST(CpuAllocatorTest, ASinkHearsWhenASlotIsFreed) {
  Install(DeviceId::Kind::kHost);
  c10::Allocator& allocator = *c10::GetAllocator(c10::kCPU);
  testing::RunningPass running(PoolOf({}), testing::OneOpEach({{0, 128}}));
  running->BeginOp(0, nullptr);
  SlotFreeSink sink;
  c10::DataPtr data = allocator.allocate(100);
  const void* const slot = data.get();
  EXPECT_THAT(sink.slots, ::testing::IsEmpty());
  data.clear();
  allocator.allocate(200).clear();  // a miss
  EXPECT_THAT(sink.slots, ::testing::ElementsAre(slot));
  EXPECT_THAT(sink.devices, ::testing::ElementsAre(DeviceId{}));
  EXPECT_EQ(sink.allocated, 1);
  EXPECT_EQ(sink.freed, 1);
}

// Field faults 3 and 8: torch's own type, and not before idle arenas have given their memory back.
TEST(CpuAllocatorTest, IdleArenasGoBeforeTheErrorOfTorchsOwnType) {
  Install(DeviceId::Kind::kHost);
  ArenaPool& pool = PoolOf({});
  { const testing::RunningPass running(pool, testing::OneOpEach({{0, 1_MiB}})); }
  ASSERT_GT(pool.MappedBytes(), 0);
  c10::Allocator& allocator = *c10::GetAllocator(c10::kCPU);
  EXPECT_THROW((void)allocator.allocate(std::size_t{1} << 60), c10::OutOfMemoryError);
  EXPECT_EQ(pool.MappedBytes(), 0);
  EXPECT_NE(allocator.allocate(100).get(), nullptr);
}

}  // namespace
}  // namespace livepool
