#include "cuda_allocator.h"

#include <c10/cuda/CUDAException.h>

#include <algorithm>
#include <iterator>

#include "livepool/pool/pass.h"
#include "livepool/pool/thread_state.h"

namespace livepool {
namespace {

std::atomic<CudaAllocator*> instance{nullptr};

// True if the calling thread's allocations are of interest: served, or reported. A pass over host memory may be a sink,
// too, but what it asks for here is neither.
bool ServesOrRecords() {
  const ThreadState& thread = CurrentThread();
  if (thread.pass != nullptr) return thread.pass->device().kind == DeviceId::Kind::kCuda;
  return thread.sink != nullptr;
}

// Requests of nothing are not of interest: they have no address, and would shift the count of those that have.
bool Interesting(size_t size) { return size > 0 && ServesOrRecords(); }

}  // namespace

CudaAllocator::CudaAllocator(c10_compat::CUDAAllocator& upstream, const CudaMachine& machine)
    : upstream_(upstream), machine_(machine) {
  instance.store(this, std::memory_order_release);
}

CudaAllocator* CudaAllocator::Instance() { return instance.load(std::memory_order_acquire); }

CudaDevice& CudaAllocator::Device(int index) {
  TORCH_CHECK(index >= 0 && index < C10_COMPILE_TIME_MAX_GPUS, "livepool: there is no device cuda:", index);
  std::atomic<CudaDevice*>& place = devices_[static_cast<std::size_t>(index)];
  if (CudaDevice* device = place.load(std::memory_order_acquire)) return *device;
  const std::lock_guard lock(mutex_);
  if (place.load(std::memory_order_relaxed) == nullptr) {
    auto* device = new CudaDevice(static_cast<c10::DeviceIndex>(index),
                                  {upstream_, machine_, history_, [this] { return Capturing(); }});
    if (memory_limit_) device->limit().SetBytes(memory_limit_);
    place.store(device, std::memory_order_release);
    const std::size_t count = std::max(device_count_.load(), static_cast<std::size_t>(index) + 1);
    device_count_.store(count, std::memory_order_release);
  }
  return *place.load(std::memory_order_relaxed);
}

template <typename Function>
void CudaAllocator::ForEachDevice(const Function& function) const {
  const std::size_t count = device_count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (CudaDevice* device = devices_[i].load(std::memory_order_acquire)) function(*device);
  }
}

std::vector<ArenaPool*> CudaAllocator::Pools() const {
  std::vector<ArenaPool*> pools;
  ForEachDevice([&](const CudaDevice& device) {
    if (device.pool() != nullptr) pools.push_back(device.pool());
  });
  return pools;
}

bool CudaAllocator::Capturing() const {
  bool capturing = false;
  ForEachDevice([&](const CudaDevice& device) { capturing = capturing || device.open_pools().Capturing(); });
  return capturing;
}

void CudaAllocator::SetMemoryLimit(std::optional<Bytes> bytes) {
  {
    const std::lock_guard lock(mutex_);
    memory_limit_ = bytes;
  }
  ForEachDevice([&](CudaDevice& device) { device.limit().SetBytes(bytes); });
}

std::optional<Bytes> CudaAllocator::memory_limit() const {
  const std::lock_guard lock(mutex_);
  return memory_limit_;
}

void CudaAllocator::ShareMemoryLimit(int device_count) {
  if (!memory_limit()) return;
  for (int i = 0; i < device_count; ++i) Device(i).limit().Share();
}

void CudaAllocator::init(int device_count) {
  upstream_.init(device_count);
  ShareMemoryLimit(device_count);
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

c10::DeleterFnPtr CudaAllocator::raw_deleter() const {
  return ServesOrRecords() ? &CudaAllocator::Delete : upstream_.raw_deleter();
}

// The deleter of slots, and of what a recording thread got.
void CudaAllocator::Delete(void* address) { Instance()->raw_delete(address); }

void CudaAllocator::raw_delete(void* address) {
  const SlotPlace place = Find(address);
  if (place.arena != nullptr) return FreeSlot(place, address);
  // Before it is freed, as another thread may then get the address at once. Recordings are of the current device.
  if (TraceSink* sink = CurrentThread().sink; sink != nullptr && address != nullptr) {
    sink->OnFree({DeviceId::Kind::kCuda, machine_.current_device()}, address);
  }
  upstream_.raw_delete(address);
}

void CudaAllocator::FreeSlot(const SlotPlace& place, void* address) noexcept {
  if (ProcessIsExiting()) return;
  if (TraceSink* sink = CurrentThread().sink) sink->OnSlotFree(place.device->pool()->device(), address);
  place.device->OnFreed(*place.arena, address);
  place.arena->Free(address);
}

void* CudaAllocator::Serve(int device, size_t size, cudaStream_t stream) {
  Server* pass = CurrentThread().pass;
  if (pass == nullptr || pass->device() != DeviceId{DeviceId::Kind::kCuda, device}) return nullptr;
  CudaDevice& state = Device(device);
  if (state.open_pools().Covers(stream)) return nullptr;
  void* slot = pass->Serve(static_cast<Bytes>(size), stream, __builtin_frame_address(0));
  if (slot != nullptr) state.OnServed(*pass->arena(), slot, static_cast<Bytes>(size), stream);
  return slot;
}

void CudaAllocator::Report(int device, void* address, size_t size, cudaStream_t stream) {
  TraceSink* sink = CurrentThread().sink;
  if (sink != nullptr) sink->OnAlloc({DeviceId::Kind::kCuda, device}, address, static_cast<Bytes>(size), stream);
}

// Upstream's memory. Upstream has given back its caches when it says that there is no memory; then idle arenas give
// theirs back, and only if that does not help either the user sees the error.
template <typename Allocate>
auto CudaAllocator::FromUpstream(const Allocate& allocate) {
  try {
    return allocate();
  } catch (c10::OutOfMemoryError& error) {
    CudaDevice& device = Device(machine_.current_device());
    if (device.Trim() == 0) {
      Explain(error, device);
      throw;
    }
    OomReports::Forget();
    device.stats().ForgiveOutOfMemory();
  }
  try {
    return allocate();
  } catch (c10::OutOfMemoryError& error) {
    Explain(error, Device(machine_.current_device()));
    throw;
  }
}

void CudaAllocator::Explain(c10::OutOfMemoryError& error, const CudaDevice& device) const {
  OomReports::Report();
  std::string text = device.Describe();
  const Server* pass = CurrentThread().pass;
  if (pass != nullptr && pass->device().kind == DeviceId::Kind::kCuda && pass->height() > 0) {
    text += (text.empty() ? "" : "; ") + std::string("asked for within a pass whose plan takes ") +
            FormatBytes(pass->height()) + " of an arena";
  }
  if (!text.empty()) error.add_context("livepool: " + text);
}

c10::DataPtr CudaAllocator::allocate(size_t size) {
  const auto upstream = [&] { return FromUpstream([&] { return upstream_.allocate(size); }); };
  if (!Interesting(size)) return upstream();
  const int device = machine_.current_device();
  const cudaStream_t stream = machine_.current_stream(device);
  if (void* slot = Serve(device, size, stream)) {
    return {slot, slot, &CudaAllocator::Delete, c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(device))};
  }
  c10::DataPtr data = upstream();
  if (CurrentThread().sink != nullptr && data.get() == data.get_context()) {
    (void)data.compare_exchange_deleter(upstream_.raw_deleter(), &CudaAllocator::Delete);
  }
  Report(device, data.get(), size, stream);
  return data;
}

void* CudaAllocator::raw_alloc(size_t size) {
  if (!Interesting(size)) return FromUpstream([&] { return upstream_.raw_alloc(size); });
  return raw_alloc_with_stream(size, machine_.current_stream(machine_.current_device()));
}

void* CudaAllocator::raw_alloc_with_stream(size_t size, cudaStream_t stream) {
  const auto upstream = [&] { return FromUpstream([&] { return upstream_.raw_alloc_with_stream(size, stream); }); };
  if (!Interesting(size)) return upstream();
  const int device = machine_.current_device();
  if (void* slot = Serve(device, size, stream)) return slot;
  void* address = upstream();
  Report(device, address, size, stream);
  return address;
}

void CudaAllocator::copy_data(void* dest, const void* src, std::size_t count) const {
  C10_CUDA_CHECK(cudaMemcpy(dest, src, count, cudaMemcpyDeviceToDevice));
}

void CudaAllocator::recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) {
  const SlotPlace place = Find(data.get());
  if (place.arena != nullptr) return place.device->OrderOf(*place.arena).Use(data.get(), stream.stream());
  if (data.get_deleter() != &CudaAllocator::Delete) return upstream_.recordStream(data, stream);
  // Recorded: upstream knows the address, and only its own deleter convinces it.
  c10::DataPtr plain(data.get(), data.get(), upstream_.raw_deleter(), data.device());
  upstream_.recordStream(plain, stream);
  (void)plain.release_context();
}

void CudaAllocator::emptyCache(c10_compat::MempoolId_t mempool) {
  // The arenas belong to no MemPool: only a call for everything gives them back.
  if (mempool == c10_compat::MempoolId_t{0, 0}) {
    ForEachDevice([](CudaDevice& device) { device.Trim(); });
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
  Device(device).open_pools().Begin(mempool, std::move(filter), machine_.current_stream(device), InOwnCapture());
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
  ForEachDevice([&](const CudaDevice& device) {
    std::vector<c10_compat::SegmentInfo> segments = device.Segments();
    std::move(segments.begin(), segments.end(), std::back_inserter(info.segments));
  });
  if (include_traces) history_.MergeInto(info.device_traces);
  return info;
}

void CudaAllocator::recordHistory(bool enabled, c10_compat::CreateContextFn context, size_t max_entries,
                                  c10_compat::RecordContext when, bool clear, const std::vector<std::string>& skip) {
  upstream_.recordHistory(enabled, context, max_entries, when, clear, skip);
  history_.Configure(enabled, context, max_entries, when, clear, skip);
}

}  // namespace livepool
