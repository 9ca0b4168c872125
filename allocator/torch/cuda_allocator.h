// torch's CUDA allocator: slots of the running pass, or upstream's memory.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "c10_compat.h"
#include "cuda_device.h"

namespace livepool {

// Note [Two deleters on CUDA]
// What is not planned is upstream's own, untouched DataPtr: upstream ignores record_stream on a DataPtr with
// a foreign deleter, and torch.compile's graph trees compare a storage's deleter with raw_deleter(), which is
// therefore upstream's. Only slots have our deleter; it finds the arena by address (context == data).
// So raw_deallocate() cannot free a slot, although raw_allocate() could return one. Nothing in torch calls
// the pair for CUDA: raw_alloc() and raw_delete() are used, and these do go by address.
//
// Immortal, as is `upstream`. No driver call is made before the first pool is needed. livepool::OutOfMemory
// never leaves an allocation: a slot that cannot be had is a miss, and upstream throws c10::OutOfMemoryError.
class CudaAllocator final : public c10_compat::CUDAAllocator {
 public:
  explicit CudaAllocator(c10_compat::CUDAAllocator& upstream) : upstream_(upstream) {}

  // The state of a device, made at the first call. Throws c10::Error if torch cannot have such a device.
  CudaDevice& Device(int index);
  std::vector<ArenaPool*> Pools() const;
  void EnsureFreeTracking();
  // Frees a slot; ignores what is none. Throws nothing.
  void FreeSlot(void* address) noexcept;

  // c10::Allocator
  c10::DataPtr allocate(size_t size) override;
  c10::DeleterFnPtr raw_deleter() const override { return upstream_.raw_deleter(); }
  void copy_data(void* dest, const void* src, std::size_t count) const override;

  // c10::DeviceAllocator
  bool initialized() override { return upstream_.initialized(); }
  void emptyCache(c10_compat::MempoolId_t mempool) override;
  using c10_compat::CUDAAllocator::recordStream;
  void recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream stream) override;
  c10_compat::DeviceStats getDeviceStats(c10::DeviceIndex device) override;
  void resetAccumulatedStats(c10::DeviceIndex device) override;
  void resetPeakStats(c10::DeviceIndex device) override;

  // CUDAAllocator: memory
  void* raw_alloc(size_t size) override;
  void* raw_alloc_with_stream(size_t size, cudaStream_t stream) override;
  void raw_delete(void* address) override;
  void* getBaseAllocation(void* address, size_t* size) override;
  cudaError_t memcpyAsync(void* dst, int dst_device, const void* src, int src_device, size_t count, cudaStream_t stream,
                          bool p2p_enabled) override;
  void enablePeerAccess(c10::DeviceIndex device, c10::DeviceIndex accessed) override;
  c10_compat::ShareableHandle shareIpcHandle(void* address) override;
  double getMemoryFraction(c10::DeviceIndex device) override { return Device(device).MemoryFraction(); }
  void setMemoryFraction(double fraction, c10::DeviceIndex device) override {
    Device(device).SetMemoryFraction(fraction);
  }
  c10_compat::SnapshotInfo snapshot(c10_compat::MempoolId_t mempool, bool include_traces) override;
  std::string name() override { return "livepool over " + upstream_.name(); }

  // CUDAAllocator: pools, which slots stay out of
  void beginAllocateToPool(c10::DeviceIndex device, c10_compat::MempoolId_t mempool,
                           c10_compat::PoolFilter filter) override;
  void endAllocateToPool(c10::DeviceIndex device, c10_compat::MempoolId_t mempool) override;

  // CUDAAllocator: upstream's alone
  void init(int device_count) override { upstream_.init(device_count); }
  std::vector<c10_compat::StreamSegmentSize> getExpandableSegmentSizes(c10::DeviceIndex device) override {
    return upstream_.getExpandableSegmentSizes(device);
  }
  void enable(bool value) override { upstream_.enable(value); }
  bool isEnabled() const override { return upstream_.isEnabled(); }
  void cacheInfo(c10::DeviceIndex device, size_t* largest) override { upstream_.cacheInfo(device, largest); }
  void releasePool(c10::DeviceIndex device, c10_compat::MempoolId_t mempool) override {
    upstream_.releasePool(device, mempool);
  }
  int getPoolUseCount(c10::DeviceIndex device, c10_compat::MempoolId_t mempool) override {
    return upstream_.getPoolUseCount(device, mempool);
  }
  void createOrIncrefPool(c10::DeviceIndex device, c10_compat::MempoolId_t mempool,
                          std::shared_ptr<c10_compat::CUDAAllocator> allocator) override {
    upstream_.createOrIncrefPool(device, mempool, std::move(allocator));
  }
  void setUseOnOOM(c10::DeviceIndex device, c10_compat::MempoolId_t mempool, bool use_on_oom) override {
    upstream_.setUseOnOOM(device, mempool, use_on_oom);
  }
  void setNoSplit(c10::DeviceIndex device, c10_compat::MempoolId_t mempool) override {
    upstream_.setNoSplit(device, mempool);
  }
  bool checkPoolLiveAllocations(c10::DeviceIndex device, c10_compat::MempoolId_t mempool,
                                const std::unordered_set<void*>& expected) override {
    return upstream_.checkPoolLiveAllocations(device, mempool, expected);
  }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override { return upstream_.getIpcDevPtr(std::move(handle)); }
  bool isHistoryEnabled() override { return upstream_.isHistoryEnabled(); }
  void recordHistory(bool enabled, c10_compat::CreateContextFn context, size_t max_entries,
                     c10_compat::RecordContext when, bool clear, const std::vector<std::string>& skip) override {
    upstream_.recordHistory(enabled, context, max_entries, when, clear, skip);
  }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& annotation) override {
    upstream_.recordAnnotation(annotation);
  }
  void pushCompileContext(std::string& context) override { upstream_.pushCompileContext(context); }
  void popCompileContext() override { upstream_.popCompileContext(); }
  void setUserMetadata(const std::string& metadata) override { upstream_.setUserMetadata(metadata); }
  std::string getUserMetadata() override { return upstream_.getUserMetadata(); }
  void attachOutOfMemoryObserver(c10_compat::OutOfMemoryObserver observer) override {
    upstream_.attachOutOfMemoryObserver(std::move(observer));
  }
  void attachAllocatorTraceTracker(c10_compat::AllocatorTraceTracker tracker) override {
    upstream_.attachAllocatorTraceTracker(std::move(tracker));
  }
  std::shared_ptr<c10_compat::AllocatorState> getCheckpointState(c10::DeviceIndex device,
                                                                 c10_compat::MempoolId_t mempool) override {
    return upstream_.getCheckpointState(device, mempool);
  }
  c10_compat::CheckpointDelta setCheckpointPoolState(c10::DeviceIndex device,
                                                     std::shared_ptr<c10_compat::AllocatorState> state) override {
    return upstream_.setCheckpointPoolState(device, std::move(state));
  }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex device) override { return upstream_.getMemoryInfo(device); }

 private:
  struct SlotPlace {
    CudaDevice* device = nullptr;
    PlannedArena* arena = nullptr;  // null: not an arena's address
  };
  SlotPlace Find(const void* address) const noexcept;
  bool InArena(const void* address) const noexcept { return Find(address).arena != nullptr; }

  void* Serve(int device, size_t size, cudaStream_t stream);
  template <typename Allocate>
  auto FromUpstream(const Allocate& allocate);

  c10_compat::CUDAAllocator& upstream_;
  std::mutex mutex_;
  std::array<std::atomic<CudaDevice*>, C10_COMPILE_TIME_MAX_GPUS> devices_{};
  std::atomic<std::size_t> device_count_{0};  // devices_ beyond it are null
  std::once_flag tracking_;
};

// The process's CudaAllocator, or null before detail::InstallCuda.
CudaAllocator* InstalledCudaAllocator();

}  // namespace livepool
