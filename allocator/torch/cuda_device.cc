#include "cuda_device.h"

#include <cstdlib>
#include <new>

#include "livepool/base/error.h"

namespace livepool {
namespace {

constexpr Bytes kReserveGranule = 2_MiB;

std::atomic<bool> exiting{false};

enum class BlockKind { kLive, kNeededByGraph, kFree };

void AppendBlock(c10_compat::SegmentInfo& segment, Bytes size, Bytes requested, BlockKind kind) {
  if (size == 0) return;
  auto& block = segment.blocks.emplace_back();
  block.size = static_cast<std::size_t>(size);
  block.requested_size = static_cast<std::size_t>(requested);
  block.allocated = kind == BlockKind::kLive;
  block.active = kind != BlockKind::kFree;
  if (block.allocated) segment.allocated_size += block.size;
  if (block.active) segment.active_size += block.size;
  segment.requested_size += block.requested_size;
}

c10_compat::SegmentInfo ToSegment(const ArenaPicture& picture) {
  c10_compat::SegmentInfo segment;
  segment.address = reinterpret_cast<std::size_t>(picture.base);
  segment.total_size = static_cast<std::size_t>(picture.mapped);
  segment.is_large = true;
  segment.is_expandable = true;
  if (picture.serving) {
    AppendBlock(segment, picture.mapped, picture.live_bytes, BlockKind::kLive);
    return segment;
  }
  const BlockKind gap = picture.pinned ? BlockKind::kNeededByGraph : BlockKind::kFree;
  Bytes end = 0;
  for (const SlotRange& slot : picture.slots) {
    AppendBlock(segment, slot.offset - end, 0, gap);
    AppendBlock(segment, slot.size, slot.size, BlockKind::kLive);
    end = slot.offset + slot.size;
  }
  AppendBlock(segment, picture.mapped - end, 0, gap);
  return segment;
}

}  // namespace

bool ProcessIsExiting() { return exiting.load(std::memory_order_relaxed); }

CudaDevice::CudaDevice(c10::DeviceIndex index, const Surroundings& around)
    : index_(index),
      around_(around),
      stats_(around.upstream, index, [this] { return pool() == nullptr ? ArenaUsage() : pool()->Usage(); }),
      limit_(around.upstream, around.machine, index),
      open_pools_(around.machine) {}

ArenaPool& CudaDevice::Pool() {
  if (ArenaPool* made = pool()) return *made;
  const std::lock_guard lock(mutex_);
  if (ArenaPool* made = pool()) return *made;
  std::string why_not;
  const CudaDriver* driver = around_.machine.driver(&why_not);
  if (driver == nullptr) throw Error("livepool: cuda:" + std::to_string(index_) + ": " + why_not);
  auto memory = std::make_unique<ArenaMemory>(
      *driver, index_, stats_, limit_,
      ArenaMemory::Device{.wait_idle = [this](const std::byte* address) { WaitIdle(address); },
                          .may_unmap = [this] { return MayUnmap(); }});
  ArenaMemory* const raw = memory.get();
  for (const int peer : peers_) raw->AllowPeer(peer);
  const Bytes reserve = AlignUp(around_.machine.total_memory(index_), kReserveGranule);
  // Registered after CUDA's own exit handlers, so it runs before them.
  static const int registered = std::atexit([] { exiting.store(true, std::memory_order_relaxed); });
  (void)registered;
  auto* made = new ArenaPool({DeviceId::Kind::kCuda, index_}, std::move(memory), reserve, [this] {
    // torch can empty the caches of all devices only.
    if (MayUnmap()) around_.upstream.emptyCache({0, 0});
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
  if (!around_.capturing()) {
    const OnDevice on(index_);
    if (cudaDeviceSynchronize() == cudaSuccess) return;
    (void)cudaGetLastError();
  }
  // A graph is being captured, so the device as a whole cannot be waited for.
  const PlannedArena* arena = pool()->Find(address);
  ArenaOrder* order = arena == nullptr ? nullptr : FindOrder(*arena);
  if (order != nullptr) order->WaitIdle();
}

// A capture that was begun with the CUDA runtime, by another thread on a stream that does not synchronise with the
// default one, cannot be seen.
bool CudaDevice::MayUnmap() const {
  return !around_.capturing() && !around_.machine.is_capturing(around_.machine.current_stream(index_));
}

c10_compat::DeviceStats CudaDevice::Stats() {
  if (pool() != nullptr) pool()->Settle();
  return stats_.Get();
}

void CudaDevice::AllowPeer(int peer) {
  const std::lock_guard lock(mutex_);
  peers_.push_back(peer);
  if (ArenaMemory* memory = memory_.load(std::memory_order_acquire)) memory->AllowPeer(peer);
}

std::vector<c10_compat::SegmentInfo> CudaDevice::Segments() const {
  std::vector<c10_compat::SegmentInfo> segments;
  if (pool() == nullptr) return segments;
  for (const ArenaPicture& picture : pool()->Pictures()) {
    if (picture.mapped == 0) continue;
    segments.push_back(ToSegment(picture));
    segments.back().device = index_;
    if (const ArenaOrder* order = FindOrder(*pool()->Find(picture.base))) segments.back().stream = order->stream();
  }
  return segments;
}

std::string CudaDevice::Describe() const {
  if (pool() == nullptr) return {};
  const PoolStats stats = pool()->Stats();
  if (stats.arena_bytes == 0) return {};
  return "the arenas of " + pool()->device().Name() + " hold " + FormatBytes(stats.arena_bytes) + ", " +
         FormatBytes(stats.live_bytes) + " of them in live tensors";
}

void CudaDevice::OnServed(const PlannedArena& arena, void* slot, Bytes size, cudaStream_t stream) noexcept {
  if (ArenaOrder* order = FindOrder(arena)) order->Served(slot);
  if (c10::memoryProfilingEnabled() || around_.history.enabled()) Note(slot, {size, stream});
}

void CudaDevice::Note(void* slot, const Noted& note) noexcept {
  try {
    const std::lock_guard lock(noted_mutex_);
    noted_.emplace(slot, note);
    noted_count_.store(noted_.size(), std::memory_order_release);
  } catch (const std::bad_alloc&) {
    return;
  }
  ReportToProfiler(slot, note.size);
  if (around_.history.enabled()) around_.history.Alloc(index_, slot, static_cast<std::size_t>(note.size), note.stream);
}

void CudaDevice::OnFreed(const PlannedArena& arena, void* slot) noexcept {
  if (ArenaOrder* order = FindOrder(arena)) order->Freed(slot);
  if (noted_count_.load(std::memory_order_acquire) == 0) return;
  Noted note;
  {
    const std::lock_guard lock(noted_mutex_);
    const auto it = noted_.find(slot);
    if (it == noted_.end()) return;
    note = it->second;
    noted_.erase(it);
    noted_count_.store(noted_.size(), std::memory_order_release);
  }
  ReportToProfiler(slot, -note.size);
  if (around_.history.enabled()) around_.history.Free(index_, slot, static_cast<std::size_t>(note.size), note.stream);
}

void CudaDevice::ReportToProfiler(void* slot, Bytes change) noexcept {
  if (!c10::memoryProfilingEnabled()) return;
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
