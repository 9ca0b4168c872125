// The allocator conformance suite on the CUDA allocator, over torch's own. Skipped, with the reason, where there is
// no GPU.
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>

#include "allocator/allocator_conformance.h"
#include "allocator/torch/c10_block.h"
#include "c10_compat.h"
#include "livepool/torch/cuda_pass.h"
#include "livepool/torch/install.h"

namespace livepool {
namespace {

struct Gpu {
  static constexpr Bytes kAlignment = 512;
  static constexpr bool kReadable = true;
  using Refusal = c10::OutOfMemoryError;
  static std::string WhyNot() { return c10::cuda::device_count() > 0 ? "" : "no CUDA device"; }

  Gpu() {
    c10_compat::native::init(c10::cuda::device_count());
    Install(DeviceId::Kind::kCuda);
  }
  ArenaPool& pool() { return PoolOf({DeviceId::Kind::kCuda, 0}); }
  c10_compat::CUDAAllocator& allocator() { return *c10_compat::native::get(); }
  Block Allocate(Bytes size) { return OwnedBy(allocator().allocate(static_cast<std::size_t>(size))); }
  void* RawAllocate(Bytes size) { return allocator().raw_alloc(static_cast<std::size_t>(size)); }
  void RawFree(void* address) { allocator().raw_delete(address); }
  void Fill(void* address, Bytes size, unsigned char value) {
    C10_CUDA_CHECK(cudaMemset(address, value, static_cast<std::size_t>(size)));
  }
  std::vector<std::byte> Read(const void* address, Bytes size) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(size));
    C10_CUDA_CHECK(cudaMemcpy(bytes.data(), address, bytes.size(), cudaMemcpyDeviceToHost));
    return bytes;
  }
  void BeginPass(PlannedArena& arena) { BeginDevicePass(0, arena, nullptr); }
  void EndPass(PlannedArena& arena) { EndDevicePass(0, arena, nullptr); }
  std::vector<std::string> Misuse() { return {}; }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Gpu, AllocatorConformance, Gpu);

}  // namespace
}  // namespace livepool
