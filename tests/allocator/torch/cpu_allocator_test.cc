// The CPU allocator as torch sees it, without and with a pass.
#include <c10/core/Allocator.h>
#include <gtest/gtest.h>

#include <cstring>

#include "allocator/allocator_conformance.h"
#include "allocator/pool/test_tables.h"
#include "allocator/torch/c10_block.h"
#include "livepool/torch/install.h"

namespace livepool {
namespace {

struct CpuHarness {
  static constexpr Bytes kAlignment = 64;
  static constexpr bool kReadable = true;
  using Refusal = c10::Error;  // upstream's own
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

}  // namespace
}  // namespace livepool
