// The allocator conformance suite on the pool alone: a pass, and the host's own allocator as upstream.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "allocator/allocator_conformance.h"
#include "allocator/backend/fake_backend.h"
#include "allocator/backend/fake_driver.h"
#include "allocator/pool/test_tables.h"
#include "livepool/backend/cuda_backend.h"
#include "livepool/backend/host_backend.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

constexpr std::size_t kHostAlignment = 512;

// The smallest allocator over a pool. `Memory` makes the backend and looks at its bytes.
template <typename Memory>
class PoolHarness {
 public:
  static constexpr Bytes kAlignment = Memory::kAlignment;
  static constexpr bool kReadable = Memory::kReadable;
  using Refusal = OutOfMemory;
  static std::string WhyNot() { return ""; }

  PoolHarness() { current = &pool_; }

  ArenaPool& pool() { return pool_; }
  Block Allocate(Bytes size) { return {RawAllocate(size), &Delete}; }
  void* RawAllocate(Bytes size) {
    if (size == 0) return nullptr;
    Server* const pass = CurrentThread().pass;
    std::byte* const slot = pass == nullptr ? nullptr : pass->Serve(size, nullptr, nullptr);
    if (slot != nullptr) return slot;
    if (size > 1_GiB) throw OutOfMemory("upstream has no " + FormatBytes(size), size);
    return std::aligned_alloc(kHostAlignment, static_cast<std::size_t>(AlignUp(size, kHostAlignment)));
  }
  void RawFree(void* address) { Delete(address); }
  void Fill(void* address, Bytes size, unsigned char value) {
    if (kReadable || pool_.Find(address) == nullptr) std::memset(address, value, static_cast<std::size_t>(size));
  }
  std::vector<std::byte> Read(const void* address, Bytes size) {
    const auto* const begin = static_cast<const std::byte*>(address);
    return {begin, begin + size};
  }
  void BeginPass(PlannedArena&) {}
  void EndPass(PlannedArena&) {}
  std::vector<std::string> Misuse() { return memory_.Misuse(); }

 private:
  // A deleter has an address and nothing else.
  static inline ArenaPool* current = nullptr;
  static void Delete(void* address) {
    if (PlannedArena* const arena = current->Find(address)) {
      arena->Free(address);
    } else {
      std::free(address);
    }
  }

  Memory memory_;
  ArenaPool& pool_ = testing::Immortal(new ArenaPool({}, memory_.Make(), 16_MiB));
};

struct Host {
  static constexpr Bytes kAlignment = 64;
  static constexpr bool kReadable = true;
  std::unique_ptr<Backend> Make() { return std::make_unique<HostBackend>(); }
  std::vector<std::string> Misuse() { return {}; }
};
INSTANTIATE_TYPED_TEST_SUITE_P(PoolOnHost, AllocatorConformance, PoolHarness<Host>);

struct Fake {
  static constexpr Bytes kAlignment = 64;
  static constexpr bool kReadable = true;
  std::unique_ptr<Backend> Make() {
    auto made = std::make_unique<FakeBackend>();
    backend = made.get();
    return made;
  }
  std::vector<std::string> Misuse() { return backend->misuse(); }
  FakeBackend* backend = nullptr;
};
INSTANTIATE_TYPED_TEST_SUITE_P(PoolOnFake, AllocatorConformance, PoolHarness<Fake>);

struct Cuda {
  static constexpr Bytes kAlignment = 512;
  static constexpr bool kReadable = false;
  std::unique_ptr<Backend> Make() { return std::make_unique<CudaBackend>(FakeDriver::table(), 0); }
  std::vector<std::string> Misuse() {
    EXPECT_EQ(driver.allocated(), driver.mapped()) << "physical memory without an address";
    EXPECT_EQ(driver.open_handles(), 0);
    return driver.misuse();
  }
  FakeDriver driver;
};
INSTANTIATE_TYPED_TEST_SUITE_P(PoolOnFakeDriver, AllocatorConformance, PoolHarness<Cuda>);

}  // namespace
}  // namespace livepool
