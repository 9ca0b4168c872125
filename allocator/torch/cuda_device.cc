#include "cuda_device.h"

#include <c10/cuda/CUDAStream.h>

#include <cstdlib>

#include "livepool/base/error.h"

namespace livepool {
namespace {

constexpr Bytes kReserveGranule = 2_MiB;

std::atomic<bool> exiting{false};

}  // namespace

bool ProcessIsExiting() { return exiting.load(std::memory_order_relaxed); }

ArenaPool& CudaDevice::Pool() {
  if (ArenaPool* made = pool()) return *made;
  const std::lock_guard lock(mutex_);
  if (ArenaPool* made = pool()) return *made;
  std::string why_not;
  const CudaDriver* driver = LoadCudaDriver(&why_not);
  if (driver == nullptr) throw Error("livepool: cuda:" + std::to_string(index_) + ": " + why_not);
  auto memory = std::make_unique<ArenaMemory>(*driver, index_, upstream_, stats_,
                                              [this](const std::byte* address) { WaitIdle(address); });
  ArenaMemory* const raw = memory.get();
  for (const int peer : peers_) raw->AllowPeer(peer);
  const Bytes reserve = AlignUp(raw->total(), kReserveGranule);
  // Registered after CUDA's own exit handlers, so it runs before them.
  static const int registered = std::atexit([] { exiting.store(true, std::memory_order_relaxed); });
  (void)registered;
  auto* made = new ArenaPool({DeviceId::Kind::kCuda, index_}, std::move(memory), reserve, [this] {
    // torch can empty the caches of all devices only. Illegal while a graph is captured.
    if (!open_pools_.any()) upstream_.emptyCache({0, 0});
  });
  memory_.store(raw, std::memory_order_release);
  pool_.store(made, std::memory_order_release);
  return *made;
}

ArenaOrder* CudaDevice::FindOrder(const PlannedArena& arena) const {
  ArenaOrder* order = orders_.load(std::memory_order_acquire);
  while (order != nullptr && &order->arena() != &arena) order = order->next();
  return order;
}

ArenaOrder& CudaDevice::OrderOf(const PlannedArena& arena) {
  if (ArenaOrder* order = FindOrder(arena)) return *order;
  const std::lock_guard lock(mutex_);
  if (ArenaOrder* order = FindOrder(arena)) return *order;
  auto* order = new ArenaOrder(index_, arena, orders_.load(std::memory_order_relaxed));
  orders_.store(order, std::memory_order_release);
  return *order;
}

void CudaDevice::WaitIdle(const std::byte* address) noexcept {
  if (!open_pools_.any()) {
    const OnDevice on(index_);
    if (cudaDeviceSynchronize() == cudaSuccess) return;
    (void)cudaGetLastError();
  }
  // A graph is being captured, so the device as a whole cannot be waited for.
  const PlannedArena* arena = pool()->Find(address);
  ArenaOrder* order = arena == nullptr ? nullptr : FindOrder(*arena);
  if (order != nullptr) order->WaitIdle();
}

double CudaDevice::MemoryFraction() {
  const auto set = memory() == nullptr ? std::nullopt : memory()->fraction();
  return set.has_value() ? *set : upstream_.getMemoryFraction(index_);
}

void CudaDevice::SetMemoryFraction(double fraction) {
  memory() == nullptr ? upstream_.setMemoryFraction(fraction, index_) : memory()->SetFraction(fraction);
}

void CudaDevice::AllowPeer(int peer) {
  const std::lock_guard lock(mutex_);
  peers_.push_back(peer);
  if (memory() != nullptr) memory()->AllowPeer(peer);
}

std::vector<c10_compat::SegmentInfo> CudaDevice::Segments() const {
  std::vector<c10_compat::SegmentInfo> segments;
  if (memory() == nullptr) return segments;
  for (const ArenaMemory::Range& range : memory()->Ranges()) {
    const PlannedArena* arena = pool()->Find(range.base);
    if (range.mapped == 0 || arena == nullptr) continue;
    const ArenaOrder* order = FindOrder(*arena);
    const bool needed = arena->arena().pinned();
    c10_compat::SegmentInfo& segment = segments.emplace_back();
    segment.device = index_;
    segment.address = reinterpret_cast<std::size_t>(range.base);
    segment.total_size = static_cast<std::size_t>(range.mapped);
    segment.allocated_size = segment.active_size = segment.requested_size = needed ? segment.total_size : 0;
    segment.stream = order == nullptr ? nullptr : order->stream();
    segment.is_large = true;
    segment.is_expandable = true;
    auto& block = segment.blocks.emplace_back();
    block.size = segment.total_size;
    block.requested_size = segment.requested_size;
    block.allocated = block.active = needed;
  }
  return segments;
}

Bytes CudaDevice::Trim() {
  if (pool() == nullptr || open_pools_.any() || IsCapturing(c10::cuda::getCurrentCUDAStream(index_))) return 0;
  return pool()->Trim();
}

void CudaDevice::OnServed(void* slot, Bytes size) noexcept {
  for (ArenaOrder* order = orders_.load(std::memory_order_acquire); order != nullptr; order = order->next()) {
    if (order->arena().arena().Contains(slot)) order->Served(slot);
  }
  if (!c10::memoryProfilingEnabled()) return;
  {
    const std::lock_guard lock(profiled_mutex_);
    profiled_[slot] = size;
    profiled_count_.store(profiled_.size(), std::memory_order_release);
  }
  ReportToProfiler(slot, size);
}

void CudaDevice::OnFreed(PlannedArena& arena, void* slot) noexcept {
  if (ArenaOrder* order = FindOrder(arena)) order->Freed(slot);
  if (profiled_count_.load(std::memory_order_acquire) == 0) return;
  Bytes size = 0;
  {
    const std::lock_guard lock(profiled_mutex_);
    const auto it = profiled_.find(slot);
    if (it == profiled_.end()) return;
    size = it->second;
    profiled_.erase(it);
    profiled_count_.store(profiled_.size(), std::memory_order_release);
  }
  ReportToProfiler(slot, -size);
}

void CudaDevice::ReportToProfiler(void* slot, Bytes change) noexcept {
  try {
    const c10_compat::DeviceStats stats = Stats();
    c10::reportMemoryUsageToProfiler(slot, change, static_cast<std::size_t>(stats.allocated_bytes[0].current),
                                     static_cast<std::size_t>(stats.reserved_bytes[0].current),
                                     c10::Device(c10::kCUDA, index_));
  } catch (...) {
    // A deleter may not throw, and a line less in a profile harms nobody.
  }
}

}  // namespace livepool
