#include "cuda_arena_memory.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <utility>

#include "livepool/backend/cuda_context.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

// Mapping memory does no harm to a capture that some thread has under way, but CUDA cannot know that and
// would fail both. In relaxed mode it lets this thread's calls pass.
class RelaxedCapture {
 public:
  RelaxedCapture() noexcept { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// Retained for good, as everything here is immortal.
cuda::Context PrimaryContext(const CudaDriver& driver, int ordinal) {
  cuda::Device device = 0;
  cuda::Context context = nullptr;
  cuda::Result result = driver.DeviceGet(&device, ordinal);
  if (result == cuda::kSuccess) result = driver.PrimaryCtxRetain(&context, device);
  if (result == cuda::kSuccess) return context;
  throw Error("cuda:" + std::to_string(ordinal) + ": cuDevicePrimaryCtxRetain: " + DescribeResult(driver, result));
}

}  // namespace

ArenaMemory::ArenaMemory(const CudaDriver& driver, c10::DeviceIndex device, CudaStats& stats, MemoryLimit& limit,
                         Device about)
    : driver_(driver),
      inner_(driver, device),
      stats_(stats),
      limit_(limit),
      about_(std::move(about)),
      context_(PrimaryContext(driver, device)) {}

std::byte* ArenaMemory::Reserve(Bytes size) {
  std::byte* const base = inner_.Reserve(size);
  const std::lock_guard lock(mutex_);
  ranges_.push_back({base, 0});
  return base;
}

void ArenaMemory::Map(std::byte* address, Bytes size) {
  const std::lock_guard lock(mutex_);
  limit_.Check(size);
  const RelaxedCapture relaxed;
  inner_.Map(address, size);
  try {
    for (const int peer : peers_) GiveAccessLocked(address, size, peer);
  } catch (...) {
    inner_.Unmap(address, size);
    throw;
  }
  CountLocked(address, size);
}

void ArenaMemory::Unmap(std::byte* address, Bytes size) noexcept {
  about_.wait_idle(address);
  const std::lock_guard lock(mutex_);
  const RelaxedCapture relaxed;
  inner_.Unmap(address, size);
  try {
    CountLocked(address, -size);
  } catch (const std::exception&) {
    // Upstream's limit could not be raised: after a kernel has failed, every CUDA call does.
  }
}

void ArenaMemory::CountLocked(const std::byte* address, Bytes change) {
  // Ranges never overlap and all have the same size, so the owner is the last one that begins at or below.
  Range* range = nullptr;
  for (Range& each : ranges_) {
    if (each.base <= address && (range == nullptr || each.base > range->base)) range = &each;
  }
  const Bytes before = range->mapped;
  range->mapped += change;
  stats_.ArenaChanged(change, (range->mapped > 0 ? 1 : 0) - (before > 0 ? 1 : 0));
  mapped_ += change;
  limit_.SetMapped(mapped_);
}

void ArenaMemory::AllowPeer(int peer) {
  const std::lock_guard lock(mutex_);
  if (std::find(peers_.begin(), peers_.end(), peer) != peers_.end()) return;
  for (const Range& range : ranges_) {
    if (range.mapped > 0) GiveAccessLocked(range.base, range.mapped, peer);
  }
  peers_.push_back(peer);
}

void ArenaMemory::GiveAccessLocked(std::byte* address, Bytes size, int peer) const {
  const CurrentContext current(driver_, context_);
  cuda::AccessDesc access;
  access.location.id = peer;
  const cuda::Result result =
      driver_.MemSetAccess(reinterpret_cast<std::uintptr_t>(address), static_cast<std::size_t>(size), &access, 1);
  if (result == cuda::kSuccess) return;
  throw Error(Name() + ": cuda:" + std::to_string(peer) +
              " cannot get access to the arena: cuMemSetAccess: " + DescribeResult(driver_, result));
}

}  // namespace livepool
