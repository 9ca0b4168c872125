// The conformance suite on every backend that runs without a GPU.
#include "allocator/backend/backend_conformance.h"

#include <optional>

#include "allocator/backend/fake_backend.h"
#include "allocator/backend/fake_driver.h"
#include "allocator/backend/host_probe.h"
#include "livepool/backend/cuda_backend.h"
#include "livepool/backend/host_backend.h"

namespace livepool {
namespace {

struct HostHarness {
  static constexpr bool kReadable = true;
  static std::string WhyNot() { return ""; }
  Backend& backend() { return backend_; }
  bool IsMapped(const std::byte* address) { return IsReadable(address); }
  std::vector<std::byte> Read(const std::byte* address, Bytes size) { return {address, address + size}; }
  Bytes Exhaust() {
    limit_.emplace(64_MiB);
    return 1_GiB;
  }
  std::vector<std::string> Misuse() { return {}; }

 private:
  HostBackend backend_;
  std::optional<WritableMemoryLimit> limit_;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Host, BackendConformance, HostHarness);

struct FakeHarness {
  static constexpr bool kReadable = true;
  static std::string WhyNot() { return ""; }
  FakeBackend& backend() { return backend_; }
  bool IsMapped(const std::byte* address) { return backend_.IsMapped(address); }
  std::vector<std::byte> Read(const std::byte* address, Bytes size) { return {address, address + size}; }
  Bytes Exhaust() { return AlignUp(65_MiB, backend_.Granularity()); }
  std::vector<std::string> Misuse() { return backend_.misuse(); }

 private:
  FakeBackend backend_;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Fake, BackendConformance, FakeHarness);

// `kUnmapsMany`: the driver takes a range of several mappings in one cuMemUnmap, or insists on one by one.
template <bool kUnmapsMany>
struct CudaHarness {
  static constexpr bool kReadable = false;  // addresses are numbers
  static std::string WhyNot() { return ""; }
  Backend& backend() { return backend_; }
  bool IsMapped(const std::byte* address) { return driver_.IsAccessible(address); }
  std::vector<std::byte> Read(const std::byte*, Bytes) { return {}; }
  Bytes Exhaust() { return 2_GiB; }
  std::vector<std::string> Misuse() {
    EXPECT_EQ(driver_.allocated(), driver_.mapped()) << "physical memory without an address";
    EXPECT_EQ(driver_.open_handles(), 0);
    EXPECT_EQ(driver_.pushed_contexts(), 0);
    return driver_.misuse();
  }

 private:
  FakeDriver driver_{{.unmaps_many_at_once = kUnmapsMany}};
  CudaBackend backend_{FakeDriver::table(), 0};
};
INSTANTIATE_TYPED_TEST_SUITE_P(CudaOnFakeDriver, BackendConformance, CudaHarness<true>);
INSTANTIATE_TYPED_TEST_SUITE_P(CudaOnStrictFakeDriver, BackendConformance, CudaHarness<false>);

}  // namespace
}  // namespace livepool
