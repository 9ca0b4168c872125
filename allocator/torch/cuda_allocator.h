// torch's CUDA allocator: slots of the running pass, or upstream's memory.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "c10_compat.h"
#include "cuda_device.h"
#include "cuda_oom.h"

namespace livepool {

// Note [Two deleters on CUDA]
// What is not planned is upstream's own, untouched DataPtr: upstream ignores record_stream on a DataPtr with
// a foreign deleter, and torch.compile's graph trees compare a storage's deleter with raw_deleter(), which is
// therefore upstream's. Slots have our deleter, and so has what a recording thread gets from upstream, as that is how
// its free is heard of. Our deleter finds by address whose memory it is (context == data).
// c10 has a second pair, raw_allocate() and raw_deallocate(), which calls raw_deleter() without telling for which
// address; extensions use it for workspaces. So to a thread that serves or records, raw_deleter() is ours, which
// frees anything. What raw_allocate() gets there must be given back there too: it is a workspace of the op. One that
// outlives the pass is not planned (the calibration sees that); should a slot be freed so after all, native throws
// "invalid device pointer".
//
// Immortal, as is `upstream`. No driver call is made before the first pool is needed. livepool::OutOfMemory
// never leaves an allocation: a slot that cannot be had is a miss, and upstream throws c10::OutOfMemoryError.
class CudaAllocator final : public c10_compat::CUDAAllocator {
 public:
  explicit CudaAllocator(c10_compat::CUDAAllocator& upstream, const CudaMachine& machine = RealMachine());
  // The last one made: the process has one, tests have more. Deleters, which get nothing but an address, look here.
  static CudaAllocator* Instance();

  // The state of a device, made at the first call. Throws c10::Error if torch cannot have such a device.
  CudaDevice& Device(int index);
  std::vector<ArenaPool*> Pools() const;
  // Bytes that upstream and the arenas may hold together on each device; none: no limit.
  void SetMemoryLimit(std::optional<Bytes> bytes);
  std::optional<Bytes> memory_limit() const;
  // Tells upstream of the limit, on `device_count` devices; to be called once upstream is initialised.
  void ShareMemoryLimit(int device_count);

  // c10::Allocator
  c10::DataPtr allocate(size_t size) override;
  c10::DeleterFnPtr raw_deleter() const override;
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
  double getMemoryFraction(c10::DeviceIndex device) override { return Device(device).limit().Fraction(); }
  void setMemoryFraction(double fraction, c10::DeviceIndex device) override {
    Device(device).limit().SetFraction(fraction);
  }
  c10_compat::SnapshotInfo snapshot(c10_compat::MempoolId_t mempool, bool include_traces) override;
  std::string name() override { return "livepool over " + upstream_.name(); }

  // CUDAAllocator: pools, which slots stay out of
  void beginAllocateToPool(c10::DeviceIndex device, c10_compat::MempoolId_t mempool,
                           c10_compat::PoolFilter filter) override;
  void endAllocateToPool(c10::DeviceIndex device, c10_compat::MempoolId_t mempool) override;

  void init(int device_count) override;
  void recordHistory(bool enabled, c10_compat::CreateContextFn context, size_t max_entries,
                     c10_compat::RecordContext when, bool clear, const std::vector<std::string>& skip) override;
  void attachOutOfMemoryObserver(c10_compat::OutOfMemoryObserver observer) override {
    upstream_.attachOutOfMemoryObserver(OomReports::Deferred(std::move(observer)));
  }

  // CUDAAllocator: upstream's alone
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
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>& annotation) override {
    upstream_.recordAnnotation(annotation);
  }
  void pushCompileContext(std::string& context) override { upstream_.pushCompileContext(context); }
  void popCompileContext() override { upstream_.popCompileContext(); }
  void setUserMetadata(const std::string& metadata) override { upstream_.setUserMetadata(metadata); }
  std::string getUserMetadata() override { return upstream_.getUserMetadata(); }
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

  static void Delete(void* address);
  void FreeSlot(const SlotPlace& place, void* address) noexcept;
  void* Serve(int device, size_t size, cudaStream_t stream);
  void Report(int device, void* address, size_t size, cudaStream_t stream);
  template <typename Allocate>
  auto FromUpstream(const Allocate& allocate);
  void Explain(c10::OutOfMemoryError& error, const CudaDevice& device) const;
  bool Capturing() const;
  template <typename Function>
  void ForEachDevice(const Function& function) const;

  c10_compat::CUDAAllocator& upstream_;
  const CudaMachine& machine_;
  SlotHistory history_;
  mutable std::mutex mutex_;  // for making devices, and for memory_limit_
  std::array<std::atomic<CudaDevice*>, C10_COMPILE_TIME_MAX_GPUS> devices_{};
  std::atomic<std::size_t> device_count_{0};  // devices_ beyond it are null
  std::optional<Bytes> memory_limit_;
};

// The process's CudaAllocator, or null before detail::InstallCuda.
CudaAllocator* InstalledCudaAllocator();

}  // namespace livepool
