// A CUDAAllocator for machines without a GPU: notes which of its functions were called, hands out numbers.
#pragma once

#include <cstdint>
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
  std::vector<c10_compat::SegmentInfo> segments;
  std::vector<std::vector<c10_compat::TraceEntry>> traces;
  std::vector<void*> freed;                        // by raw_delete
  c10::DeleterFnPtr stream_recorded_on = nullptr;  // the deleter of the last DataPtr of recordStream
  std::vector<c10_compat::OutOfMemoryObserver> observers;
  int fail_next = 0;  // so many requests run out of memory

  // Upstream takes (or gives back) a segment of `bytes`.
  void Reserve(Bytes bytes) { Change(stats.reserved_bytes, bytes), Change(stats.segment, bytes > 0 ? 1 : -1); }
  void Allocate(Bytes bytes) { Change(stats.allocated_bytes, bytes); }

  static void Deleter(void*) {}

  c10::DataPtr allocate(size_t size) override {
    Note("allocate");
    void* const address = Hand(size);
    return {address, address, &Deleter, c10::Device(c10::kCUDA, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return Note("raw_deleter"), &Deleter; }
  void copy_data(void*, const void*, std::size_t) const override { Note("copy_data"); }
  bool initialized() override { return is_initialized; }
  void emptyCache(c10_compat::MempoolId_t) override { Note("emptyCache"); }
  void recordStream(const c10::DataPtr& data, c10::cuda::CUDAStream) override {
    Note("recordStream"), stream_recorded_on = data.get_deleter();
  }
  c10_compat::DeviceStats getDeviceStats(c10::DeviceIndex) override { return Note("getDeviceStats"), stats; }
  void resetAccumulatedStats(c10::DeviceIndex) override { Note("resetAccumulatedStats"); }
  void resetPeakStats(c10::DeviceIndex) override {
    Note("resetPeakStats");
    for (auto* array : {&stats.reserved_bytes, &stats.segment, &stats.allocated_bytes, &stats.allocation}) {
      for (auto& stat : *array) stat.reset_peak();
    }
  }
  void* raw_alloc(size_t size) override { return Note("raw_alloc"), Hand(size); }
  void* raw_alloc_with_stream(size_t size, cudaStream_t) override { return Note("raw_alloc_with_stream"), Hand(size); }
  void raw_delete(void* address) override { Note("raw_delete"), freed.push_back(address); }
  void init(int) override { Note("init"); }
  double getMemoryFraction(c10::DeviceIndex) override { return Note("getMemoryFraction"), fraction; }
  void setMemoryFraction(double value, c10::DeviceIndex) override {
    Note("setMemoryFraction");
    TORCH_CHECK(0 <= value && value <= 1, "invalid fraction");
    fraction = value;
  }
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
    info.device_traces = traces;
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
  void attachOutOfMemoryObserver(c10_compat::OutOfMemoryObserver observer) override {
    Note("attachOutOfMemoryObserver"), observers.push_back(std::move(observer));
  }
  void attachAllocatorTraceTracker(c10_compat::AllocatorTraceTracker) override { Note("attachAllocatorTraceTracker"); }
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
  void* Hand(size_t size) {
    if (fail_next > 0) {
      --fail_next;
      ++stats.num_ooms;
      for (const auto& observer : observers) observer(0, size, static_cast<size_t>(total), 0);
      TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory: ", size);
    }
    return size == 0 ? nullptr : reinterpret_cast<void*>(next_address_ += 512);
  }

  std::uintptr_t next_address_ = 0x1000;
  void Note(const char* call) const { calls.emplace_back(call); }
  static void Change(c10_compat::StatArray& array, Bytes amount) {
    auto& stat = array[0];
    amount > 0 ? stat.increase(static_cast<size_t>(amount)) : stat.decrease(static_cast<size_t>(-amount));
  }
};

}  // namespace livepool
