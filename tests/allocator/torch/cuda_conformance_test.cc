// The allocator conformance suite on the CUDA allocator, without a GPU.
#include <gtest/gtest.h>

#include "allocator/allocator_conformance.h"
#include "allocator/backend/fake_driver.h"
#include "allocator/torch/c10_block.h"
#include "allocator/torch/cuda_on_fakes.h"
#include "livepool/torch/cuda_pass.h"
#include "livepool/torch/install.h"

namespace livepool {
namespace {

struct CudaOnFakes {
  static constexpr Bytes kAlignment = 512;
  static constexpr bool kReadable = false;
  using Refusal = c10::OutOfMemoryError;
  static std::string WhyNot() { return ""; }

  CudaOnFakes() {
    static const bool installed = [] {
      static FakeDriver& forever = *new FakeDriver;
      driver = &forever;
      c10_compat::native::allocator.store(&NumbersUpstream::Instance());
      Install(DeviceId::Kind::kCuda);
      return true;
    }();
    (void)installed;
  }
  ArenaPool& pool() { return PoolOf({DeviceId::Kind::kCuda, 0}); }
  c10_compat::CUDAAllocator& allocator() { return *c10_compat::native::get(); }
  Block Allocate(Bytes size) { return OwnedBy(allocator().allocate(static_cast<std::size_t>(size))); }
  void* RawAllocate(Bytes size) { return allocator().raw_alloc(static_cast<std::size_t>(size)); }
  void RawFree(void* address) { allocator().raw_delete(address); }
  void Fill(void*, Bytes, unsigned char) {}
  std::vector<std::byte> Read(const void*, Bytes) { return {}; }
  void BeginPass(PlannedArena& arena) { BeginDevicePass(0, arena, nullptr); }
  void EndPass(PlannedArena& arena) { EndDevicePass(0, arena, nullptr); }
  std::vector<std::string> Misuse() {
    EXPECT_EQ(NumbersUpstream::Instance().held(), 0) << "expected: upstream has everything back";
    EXPECT_EQ(driver->allocated(), driver->mapped());
    EXPECT_EQ(driver->mapped(), 0) << "expected: a trim gives idle arenas back";
    std::vector<std::string> misuse = driver->misuse();
    for (const std::string& each : NumbersUpstream::Instance().misuse()) misuse.push_back(each);
    return misuse;
  }

 private:
  static inline FakeDriver* driver = nullptr;
};
INSTANTIATE_TYPED_TEST_SUITE_P(CudaOnFakes, AllocatorConformance, CudaOnFakes);

}  // namespace
}  // namespace livepool
