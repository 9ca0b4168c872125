// A CUDAAllocator for machines without a GPU: notes which of its functions were called, hands out nothing.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "c10_compat.h"
#include "livepool/base/units.h"

namespace livepool {

class FakeUpstream : public c10_compat::CUDAAllocator {
 public:
  // In the order of the calls, const ones too.
  mutable std::vector<std::string> calls;
  bool is_initialized = true;
  c10_compat::DeviceStats stats;
  double fraction = 1;
  Bytes total = 1_GiB;
  c10_compat::AllocatorTraceTracker tracker;
  std::vector<c10_compat::SegmentInfo> segments;

  // Upstream takes (or gives back) a segment of `bytes`.
  void Reserve(Bytes bytes) { Change(stats.reserved_bytes, bytes), Change(stats.segment, bytes > 0 ? 1 : -1); }
  void Allocate(Bytes bytes) { Change(stats.allocated_bytes, bytes); }

  static void Deleter(void*) {}

  c10::DataPtr allocate(size_t) override { return Note("allocate"), c10::DataPtr(); }
  c10::DeleterFnPtr raw_deleter() const override { return Note("raw_deleter"), &Deleter; }
  void copy_data(void*, const void*, std::size_t) const override { Note("copy_data"); }
  bool initialized() override { return is_initialized; }
  void emptyCache(c10_compat::MempoolId_t) override { Note("emptyCache"); }
  void recordStream(const c10::DataPtr&, c10::cuda::CUDAStream) override { Note("recordStream"); }
  c10_compat::DeviceStats getDeviceStats(c10::DeviceIndex) override { return Note("getDeviceStats"), stats; }
  void resetAccumulatedStats(c10::DeviceIndex) override { Note("resetAccumulatedStats"); }
  void resetPeakStats(c10::DeviceIndex) override {
    Note("resetPeakStats");
    for (auto* array : {&stats.reserved_bytes, &stats.segment, &stats.allocated_bytes}) {
      for (auto& stat : *array) stat.reset_peak();
    }
  }
  void* raw_alloc(size_t) override { return Note("raw_alloc"), nullptr; }
  void* raw_alloc_with_stream(size_t, cudaStream_t) override { return Note("raw_alloc_with_stream"), nullptr; }
  void raw_delete(void*) override { Note("raw_delete"); }
  void init(int) override { Note("init"); }
  double getMemoryFraction(c10::DeviceIndex) override { return Note("getMemoryFraction"), fraction; }
  void setMemoryFraction(double value, c10::DeviceIndex) override { Note("setMemoryFraction"), fraction = value; }
  std::vector<c10_compat::StreamSegmentSize> getExpandableSegmentSizes(c10::DeviceIndex) override {
    return Note("getExpandableSegmentSizes"), std::vector<c10_compat::StreamSegmentSize>();
  }
  void enable(bool) override { Note("enable"); }
  bool isEnabled() const override { return Note("isEnabled"), true; }
  void cacheInfo(c10::DeviceIndex, size_t*) override { Note("cacheInfo"); }
  void* getBaseAllocation(void*, size_t*) override { return Note("getBaseAllocation"), nullptr; }
  c10_compat::SnapshotInfo snapshot(c10_compat::MempoolId_t, bool) override {
    Note("snapshot");
    c10_compat::SnapshotInfo info{};
    info.segments = segments;
    return info;
  }
  void beginAllocateToPool(c10::DeviceIndex, c10_compat::MempoolId_t, c10_compat::PoolFilter) override {
    Note("beginAllocateToPool");
  }
  void endAllocateToPool(c10::DeviceIndex, c10_compat::MempoolId_t) override { Note("endAllocateToPool"); }
  void releasePool(c10::DeviceIndex, c10_compat::MempoolId_t) override { Note("releasePool"); }
  int getPoolUseCount(c10::DeviceIndex, c10_compat::MempoolId_t) override { return Note("getPoolUseCount"), 7; }
  void createOrIncrefPool(c10::DeviceIndex, c10_compat::MempoolId_t, std::shared_ptr<CUDAAllocator>) override {
    Note("createOrIncrefPool");
  }
  void setUseOnOOM(c10::DeviceIndex, c10_compat::MempoolId_t, bool) override { Note("setUseOnOOM"); }
  void setNoSplit(c10::DeviceIndex, c10_compat::MempoolId_t) override { Note("setNoSplit"); }
  bool checkPoolLiveAllocations(c10::DeviceIndex, c10_compat::MempoolId_t, const std::unordered_set<void*>&) override {
    return Note("checkPoolLiveAllocations"), true;
  }
  c10_compat::ShareableHandle shareIpcHandle(void*) override {
    return Note("shareIpcHandle"), c10_compat::ShareableHandle{0, ""};
  }
  std::shared_ptr<void> getIpcDevPtr(std::string) override { return Note("getIpcDevPtr"), nullptr; }
  bool isHistoryEnabled() override { return Note("isHistoryEnabled"), true; }
  void recordHistory(bool, c10_compat::CreateContextFn, size_t, c10_compat::RecordContext, bool,
                     const std::vector<std::string>&) override {
    Note("recordHistory");
  }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>>&) override { Note("recordAnnotation"); }
  void pushCompileContext(std::string&) override { Note("pushCompileContext"); }
  void popCompileContext() override { Note("popCompileContext"); }
  void setUserMetadata(const std::string&) override { Note("setUserMetadata"); }
  std::string getUserMetadata() override { return Note("getUserMetadata"), "metadata"; }
  void attachOutOfMemoryObserver(c10_compat::OutOfMemoryObserver) override { Note("attachOutOfMemoryObserver"); }
  void attachAllocatorTraceTracker(c10_compat::AllocatorTraceTracker value) override {
    Note("attachAllocatorTraceTracker"), tracker = std::move(value);
  }
  void enablePeerAccess(c10::DeviceIndex, c10::DeviceIndex) override { Note("enablePeerAccess"); }
  cudaError_t memcpyAsync(void*, int, const void*, int, size_t, cudaStream_t, bool) override {
    return Note("memcpyAsync"), cudaSuccess;
  }
  std::shared_ptr<c10_compat::AllocatorState> getCheckpointState(c10::DeviceIndex, c10_compat::MempoolId_t) override {
    return Note("getCheckpointState"), nullptr;
  }
  c10_compat::CheckpointDelta setCheckpointPoolState(c10::DeviceIndex,
                                                     std::shared_ptr<c10_compat::AllocatorState>) override {
    return Note("setCheckpointPoolState"), c10_compat::CheckpointDelta();
  }
  std::string name() override { return "fake"; }
  std::pair<size_t, size_t> getMemoryInfo(c10::DeviceIndex) override { return {0, static_cast<size_t>(total)}; }

 private:
  void Note(const char* call) const { calls.emplace_back(call); }
  static void Change(c10_compat::StatArray& array, Bytes amount) {
    auto& stat = array[0];
    amount > 0 ? stat.increase(static_cast<size_t>(amount)) : stat.decrease(static_cast<size_t>(-amount));
  }
};

}  // namespace livepool
