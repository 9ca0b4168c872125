// The conformance suite on the real CUDA driver. Skipped, with the reason, where there is no GPU.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "allocator/backend/backend_conformance.h"
#include "livepool/backend/cuda_backend.h"
#include "livepool/backend/cuda_context.h"

namespace livepool {
namespace {

// The device's memory, seen through the driver.
class GpuHarness {
 public:
  static constexpr bool kReadable = true;
  static std::string WhyNot() {
    std::string why_not;
    LoadCudaDriver(&why_not);
    return why_not;
  }

  GpuHarness() { driver_.PrimaryCtxRetain(&context_, 0); }
  ~GpuHarness() { driver_.PrimaryCtxRelease(0); }
  Backend& backend() { return backend_; }
  bool IsMapped(const std::byte* address) {
    const CurrentContext current(driver_, context_);
    unsigned long long flags = 0;
    const cuda::Location device;
    return driver_.MemGetAccess(&flags, &device, AsNumber(address)) == cuda::kSuccess &&
           flags == cuda::kAccessReadWrite;
  }
  std::vector<std::byte> Read(const std::byte* address, Bytes size) {
    const CurrentContext current(driver_, context_);
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    const cuda::Result result = driver_.MemcpyDtoH(bytes.data(), AsNumber(address), bytes.size());
    EXPECT_EQ(result, cuda::kSuccess) << DescribeResult(driver_, result);
    return bytes;
  }
  // The device's own size is limit enough.
  Bytes Exhaust() { return AlignUp(MemoryInfo().second, backend_.Granularity()); }
  std::vector<std::string> Misuse() { return {}; }

  // Free and total bytes of the device.
  std::pair<Bytes, Bytes> MemoryInfo() {
    const CurrentContext current(driver_, context_);
    std::size_t free = 0;
    std::size_t total = 0;
    EXPECT_EQ(driver_.MemGetInfo(&free, &total), cuda::kSuccess);
    return {static_cast<Bytes>(free), static_cast<Bytes>(total)};
  }

 private:
  static cuda::DevicePtr AsNumber(const std::byte* address) { return reinterpret_cast<std::uintptr_t>(address); }

  const CudaDriver& driver_ = *LoadCudaDriver(nullptr);
  CudaBackend backend_{driver_, 0};
  cuda::Context context_ = nullptr;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Gpu, BackendConformance, GpuHarness);

TEST(CudaBackendGpuTest, UnmapReturnsTheMemoryToTheDevice) {
  if (const std::string why_not = GpuHarness::WhyNot(); !why_not.empty()) GTEST_SKIP() << why_not;
  GpuHarness harness;
  const Bytes size = 150_MiB;
  std::byte* const base = harness.backend().Reserve(size);
  harness.backend().Map(base, size);
  const Bytes before = harness.MemoryInfo().first;
  harness.backend().Unmap(base, size);
  EXPECT_GE(harness.MemoryInfo().first - before, size);
}

}  // namespace
}  // namespace livepool
