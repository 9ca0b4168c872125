#include "cuda_allocator.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <iterator>

#include "livepool/pool/pass.h"
#include "livepool/pool/thread_state.h"

namespace livepool {
namespace {

using c10_compat::TraceEntry;

// The deleter of slots.
void DeleteSlot(void* address) { InstalledCudaAllocator()->FreeSlot(address); }

int CurrentDevice() { return c10::cuda::current_device(); }

// True if the calling thread's allocations are of interest: served, or reported. Requests of nothing are not:
// they have no address, and would shift the count of those that have.
bool Interesting(size_t size) {
  const ThreadState& thread = CurrentThread();
  return size > 0 && (thread.pass != nullptr || thread.sink != nullptr);
}

void Report(int device, void* address, size_t size, cudaStream_t stream) {
  TraceSink* sink = CurrentThread().sink;
  if (sink != nullptr) sink->OnAlloc({DeviceId::Kind::kCuda, device}, address, static_cast<Bytes>(size), stream);
}

}  // namespace

CudaDevice& CudaAllocator::Device(int index) {
  TORCH_CHECK(index >= 0 && index < C10_COMPILE_TIME_MAX_GPUS, "livepool: there is no device cuda:", index);
  std::atomic<CudaDevice*>& place = devices_[static_cast<std::size_t>(index)];
  if (CudaDevice* device = place.load(std::memory_order_acquire)) return *device;
  const std::lock_guard lock(mutex_);
  if (place.load(std::memory_order_relaxed) == nullptr) {
    place.store(new CudaDevice(static_cast<c10::DeviceIndex>(index), upstream_), std::memory_order_release);
    const std::size_t count = std::max(device_count_.load(), static_cast<std::size_t>(index) + 1);
    device_count_.store(count, std::memory_order_release);
  }
  return *place.load(std::memory_order_relaxed);
}

std::vector<ArenaPool*> CudaAllocator::Pools() const {
  std::vector<ArenaPool*> pools;
  for (const auto& device : devices_) {
    const CudaDevice* made = device.load(std::memory_order_acquire);
    if (made != nullptr && made->pool() != nullptr) pools.push_back(made->pool());
  }
  return pools;
}

CudaAllocator::SlotPlace CudaAllocator::Find(const void* address) const noexcept {
  const std::size_t count = device_count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    CudaDevice* device = devices_[i].load(std::memory_order_acquire);
    if (device == nullptr || device->pool() == nullptr) continue;
    if (PlannedArena* arena = device->pool()->Find(address)) return {device, arena};
  }
  return {};
}

// The tracker runs on the freeing thread, under upstream's lock (see TraceSink).
void CudaAllocator::EnsureFreeTracking() {
  std::call_once(tracking_, [this] {
    upstream_.attachAllocatorTraceTracker([](const TraceEntry& entry) {
      if (entry.action_ != TraceEntry::FREE_REQUESTED) return;
      TraceSink* sink = CurrentThread().sink;
      if (sink == nullptr) return;
      sink->OnFree({DeviceId::Kind::kCuda, entry.device_}, reinterpret_cast<const void*>(entry.addr_));
    });
  });
}

void* CudaAllocator::Serve(int device, size_t size, cudaStream_t stream) {
  Server* pass = CurrentThread().pass;
  if (pass == nullptr || pass->device() != DeviceId{DeviceId::Kind::kCuda, device}) return nullptr;
  CudaDevice& state = Device(device);
  if (state.open_pools().Covers(stream)) return nullptr;
  void* slot = pass->Serve(static_cast<Bytes>(size), stream, __builtin_frame_address(0));
  if (slot != nullptr) state.OnServed(slot, static_cast<Bytes>(size));
  return slot;
}

// Upstream's memory; before it is said that there is none, idle arenas give theirs back.
template <typename Allocate>
auto CudaAllocator::FromUpstream(const Allocate& allocate) {
  try {
    return allocate();
  } catch (const c10::OutOfMemoryError&) {
    if (Device(CurrentDevice()).Trim() == 0) throw;
  }
  return allocate();
}

c10::DataPtr CudaAllocator::allocate(size_t size) {
  const auto upstream = [&] { return FromUpstream([&] { return upstream_.allocate(size); }); };
  if (!Interesting(size)) return upstream();
  const int device = CurrentDevice();
  const cudaStream_t stream = c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(device));
  if (void* slot = Serve(device, size, stream)) {
    return {slot, slot, &DeleteSlot, c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device))};
  }
  c10::DataPtr data = upstream();
  Report(device, data.get(), size, stream);
  return data;
}

void* CudaAllocator::raw_alloc(size_t size) {
  if (!Interesting(size)) return FromUpstream([&] { return upstream_.raw_alloc(size); });
  return raw_alloc_with_stream(size, c10::cuda::getCurrentCUDAStream());
}

void* CudaAllocator::raw_alloc_with_stream(size_t size, cudaStream_t stream) {
  const auto upstream = [&] { return FromUpstream([&] { return upstream_.raw_alloc_with_stream(size, stream); }); };
  if (!Interesting(size)) return upstream();
  const int device = CurrentDevice();
  if (void* slot = Serve(device, size, stream)) return slot;
  void* address = upstream();
  Report(device, address, size, stream);
  return address;
}

void CudaAllocator::FreeSlot(void* address) noexcept {
  if (address == nullptr || ProcessIsExiting()) return;
  const SlotPlace place = Find(address);
  if (place.arena == nullptr) return;
  place.device->OnFreed(*place.arena, address);
  place.arena->Free(address);
}

void CudaAllocator::raw_delete(void* address) { InArena(address) ? FreeSlot(address) : upstream_.raw_delete(address); }

void CudaAllocator::copy_data(void* dest, const void* src, std::size_t count) const {
  C10_CUDA_CHECK(cudaMemcpy(dest, src, count, cudaMemcpyDeviceToDevice));
}

void CudaAllocator::recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) {
  const SlotPlace place = Find(data.get());
  if (place.arena == nullptr) return upstream_.recordStream(data, stream);
  place.device->OrderOf(*place.arena).Use(data.get(), stream.stream());
}

void CudaAllocator::emptyCache(c10_compat::MempoolId_t mempool) {
  // The arenas belong to no MemPool: only a call for everything gives them back.
  if (mempool == c10_compat::MempoolId_t{0, 0}) {
    for (ArenaPool* pool : Pools()) Device(pool->device().index).Trim();
  }
  upstream_.emptyCache(mempool);
}

void* CudaAllocator::getBaseAllocation(void* address, size_t* size) {
  const SlotPlace place = Find(address);
  if (place.arena == nullptr) return upstream_.getBaseAllocation(address, size);
  const Arena& arena = place.arena->arena();
  if (size != nullptr) *size = static_cast<size_t>(arena.mapped());
  return arena.base();
}

// Memory that was mapped by address cannot be copied across devices by cudaMemcpyAsync without peer access;
// the peer copy does all combinations.
cudaError_t CudaAllocator::memcpyAsync(void* dst, int dst_device, const void* src, int src_device, size_t count,
                                       cudaStream_t stream, bool p2p_enabled) {
  if (dst_device != src_device && !p2p_enabled && (InArena(dst) || InArena(src))) {
    return cudaMemcpyPeerAsync(dst, dst_device, src, src_device, count, stream);
  }
  return upstream_.memcpyAsync(dst, dst_device, src, src_device, count, stream, p2p_enabled);
}

// `device` may use the memory of `accessed`, that of its arenas included.
void CudaAllocator::enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex accessed) {
  upstream_.enablePeerAccess(device, accessed);
  Device(accessed).AllowPeer(device);
}

c10_compat::ShareableHandle CudaAllocator::shareIpcHandle(void* address) {
  TORCH_CHECK(!InArena(address),
              "livepool: this tensor lies in a planned arena, whose bytes other tensors use after it, so it cannot be "
              "shared with another process. Share a copy: tensor.clone() outside of the planned pass.");
  return upstream_.shareIpcHandle(address);
}

void CudaAllocator::beginAllocateToPool(c10::DeviceIndex device, c10_compat::MempoolId_t mempool,
                                        c10_compat::PoolFilter filter) {
  upstream_.beginAllocateToPool(device, mempool, filter);
  Device(device).open_pools().Begin(mempool, std::move(filter), InOwnCapture());
}

void CudaAllocator::endAllocateToPool(c10::DeviceIndex device, c10_compat::MempoolId_t mempool) {
  Device(device).open_pools().End(mempool);
  upstream_.endAllocateToPool(device, mempool);
}

c10_compat::DeviceStats CudaAllocator::getDeviceStats(c10::DeviceIndex device) { return Device(device).Stats(); }
void CudaAllocator::resetAccumulatedStats(c10::DeviceIndex device) { Device(device).stats().ResetAccumulated(); }
void CudaAllocator::resetPeakStats(c10::DeviceIndex device) { Device(device).stats().ResetPeak(); }

c10_compat::SnapshotInfo CudaAllocator::snapshot(c10_compat::MempoolId_t mempool, bool include_traces) {
  c10_compat::SnapshotInfo info = upstream_.snapshot(mempool, include_traces);
  if (mempool != c10_compat::MempoolId_t{0, 0}) return info;
  for (ArenaPool* pool : Pools()) {
    std::vector<c10_compat::SegmentInfo> segments = Device(pool->device().index).Segments();
    std::move(segments.begin(), segments.end(), std::back_inserter(info.segments));
  }
  return info;
}

}  // namespace livepool
