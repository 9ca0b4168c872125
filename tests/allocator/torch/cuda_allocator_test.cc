#include "cuda_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "allocator/torch/cuda_fake_machine.h"
#include "allocator/torch/cuda_fake_upstream.h"
#include "livepool/pool/server.h"
#include "livepool/pool/thread_state.h"

namespace livepool {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr c10_compat::MempoolId_t kNoPool{0, 0};
constexpr c10_compat::MempoolId_t kPool{0, 5};

class CudaAllocatorTest : public testing::Test {
 protected:
  // Immortal, as in a process.
  FakeUpstream& upstream_ = *new FakeUpstream;
  CudaAllocator& allocator_ = *new CudaAllocator(upstream_, FakeMachine::kMachine);
  c10_compat::CUDAAllocator& base_ = allocator_;
};

// The base class has defaults that throw or do nothing: a forgotten override would compile.
TEST_F(CudaAllocatorTest, ForwardsWhatIsUpstreamsAlone) {
  std::string text;
  const std::map<std::string, std::function<void()>> calls = {
      {"allocate", [&] { base_.allocate(8); }},
      {"raw_alloc", [&] { base_.raw_alloc(8); }},
      {"raw_alloc_with_stream", [&] { base_.raw_alloc_with_stream(8, nullptr); }},
      {"raw_delete", [&] { base_.raw_delete(nullptr); }},
      {"raw_deleter", [&] { EXPECT_EQ(base_.raw_deleter(), &FakeUpstream::Deleter); }},
      {"init", [&] { base_.init(1); }},
      {"emptyCache", [&] { base_.emptyCache(kNoPool); }},
      {"getDeviceStats", [&] { base_.getDeviceStats(0); }},
      {"resetAccumulatedStats", [&] { base_.resetAccumulatedStats(0); }},
      {"resetPeakStats", [&] { base_.resetPeakStats(0); }},
      {"getMemoryFraction", [&] { base_.getMemoryFraction(0); }},
      {"setMemoryFraction", [&] { base_.setMemoryFraction(0.5, 0); }},
      {"getExpandableSegmentSizes", [&] { base_.getExpandableSegmentSizes(0); }},
      {"enable", [&] { base_.enable(true); }},
      {"isEnabled", [&] { base_.isEnabled(); }},
      {"cacheInfo", [&] { base_.cacheInfo(0, nullptr); }},
      {"getBaseAllocation", [&] { base_.getBaseAllocation(nullptr, nullptr); }},
      {"snapshot", [&] { base_.snapshot(); }},
      {"beginAllocateToPool", [&] { base_.beginAllocateToPool(0, kPool, [](cudaStream_t) { return true; }); }},
      {"endAllocateToPool", [&] { base_.endAllocateToPool(0, kPool); }},
      {"releasePool", [&] { base_.releasePool(0, kPool); }},
      {"getPoolUseCount", [&] { EXPECT_EQ(base_.getPoolUseCount(0, kPool), 7); }},
      {"createOrIncrefPool", [&] { base_.createOrIncrefPool(0, kPool); }},
      {"setUseOnOOM", [&] { base_.setUseOnOOM(0, kPool, true); }},
      {"setNoSplit", [&] { base_.setNoSplit(0, kPool); }},
      {"checkPoolLiveAllocations", [&] { EXPECT_TRUE(base_.checkPoolLiveAllocations(0, kPool, {})); }},
      {"shareIpcHandle", [&] { base_.shareIpcHandle(nullptr); }},
      {"getIpcDevPtr", [&] { base_.getIpcDevPtr(""); }},
      {"isHistoryEnabled", [&] { EXPECT_TRUE(base_.isHistoryEnabled()); }},
      {"recordHistory", [&] { base_.recordHistory(true, nullptr, 1, c10_compat::RecordContext::ALL, false, {}); }},
      {"recordAnnotation", [&] { base_.recordAnnotation({}); }},
      {"pushCompileContext", [&] { base_.pushCompileContext(text); }},
      {"popCompileContext", [&] { base_.popCompileContext(); }},
      {"setUserMetadata", [&] { base_.setUserMetadata(text); }},
      {"getUserMetadata", [&] { EXPECT_EQ(base_.getUserMetadata(), "metadata"); }},
      {"attachOutOfMemoryObserver", [&] { base_.attachOutOfMemoryObserver({}); }},
      {"attachAllocatorTraceTracker", [&] { base_.attachAllocatorTraceTracker({}); }},
      {"enablePeerAccess", [&] { base_.enablePeerAccess(0, 1); }},
      {"memcpyAsync", [&] { base_.memcpyAsync(nullptr, 0, nullptr, 1, 8, nullptr, false); }},
      {"getCheckpointState", [&] { base_.getCheckpointState(0, kPool); }},
      {"setCheckpointPoolState", [&] { base_.setCheckpointPoolState(0, nullptr); }},
  };
  for (const auto& [name, call] : calls) {
    upstream_.calls.clear();
    call();
    EXPECT_THAT(upstream_.calls, ElementsAre(name));
  }
}

TEST_F(CudaAllocatorTest, TellsUpstreamsNameToo) { EXPECT_EQ(base_.name(), "livepool over fake"); }

TEST_F(CudaAllocatorTest, RefusesDevicesThatCannotExist) {
  EXPECT_THROW(base_.getDeviceStats(-1), c10::Error);
  EXPECT_THAT(upstream_.calls, IsEmpty());
}

TEST_F(CudaAllocatorTest, MakesNoPoolBeforeOneIsAskedFor) {
  base_.getDeviceStats(0);
  base_.emptyCache(kNoPool);
  EXPECT_THAT(allocator_.Pools(), IsEmpty());
}

struct Sink final : TraceSink {
  void OnAlloc(DeviceId, const void* address, Bytes, StreamHandle) override { allocated.push_back(address); }
  void OnFree(DeviceId, const void* address) override { freed.push_back(address); }
  std::vector<const void*> allocated;
  std::vector<const void*> freed;
};

TEST_F(CudaAllocatorTest, ARecordingThreadHearsOfItsOwnFrees) {
  Sink sink;
  const void* data_address = nullptr;
  void* raw_address = nullptr;
  void* pair_address = nullptr;
  {
    const RecordingScope recording(sink);
    c10::DataPtr data = base_.allocate(64);
    data_address = data.get();
    data.clear();
    raw_address = base_.raw_alloc(64);
    base_.raw_delete(raw_address);
    pair_address = base_.raw_allocate(64);
    base_.raw_deallocate(pair_address);
    base_.raw_delete(nullptr);
  }
  EXPECT_THAT(sink.allocated, ElementsAre(data_address, raw_address, pair_address));
  EXPECT_THAT(sink.freed, ElementsAre(data_address, raw_address, pair_address));
  EXPECT_THAT(upstream_.freed, ElementsAre(data_address, raw_address, pair_address, nullptr));
}

// Trackers of upstream cannot be detached and cost time on each allocation for ever.
TEST_F(CudaAllocatorTest, WithoutARecordingUpstreamsDataPtrIsUntouched) {
  const c10::DataPtr data = base_.allocate(64);
  EXPECT_EQ(data.get_deleter(), base_.raw_deleter());
  EXPECT_EQ(data.get_deleter(), &FakeUpstream::Deleter);
  EXPECT_THAT(upstream_.calls, testing::Not(testing::Contains("attachAllocatorTraceTracker")));
}

TEST_F(CudaAllocatorTest, InAPassOverHostMemoryUpstreamsDataPtrIsUntouched) {
  class HostServer final : public Server {
   public:
    HostServer() : Server({DeviceId::Kind::kHost, 0}) {}
    std::byte* Serve(Bytes, StreamHandle, const void*) override { return nullptr; }
    PlannedArena* arena() const override { return nullptr; }
    Bytes height() const override { return 0; }
  } pass;
  const ThreadState before = CurrentThread();
  CurrentThread().pass = &pass;
  const c10::DataPtr data = base_.allocate(100);
  const c10::DeleterFnPtr raw = base_.raw_deleter();
  CurrentThread() = before;
  EXPECT_EQ(data.get_deleter(), &FakeUpstream::Deleter);
  EXPECT_EQ(raw, &FakeUpstream::Deleter);
}

TEST_F(CudaAllocatorTest, WhatOutlivesARecordingGoesToUpstreamAtLast) {
  Sink sink;
  c10::DataPtr data;
  {
    const RecordingScope recording(sink);
    data = base_.allocate(64);
  }
  const void* address = data.get();
  data.clear();
  EXPECT_THAT(sink.freed, IsEmpty());
  EXPECT_THAT(upstream_.freed, ElementsAre(address));
}

TEST_F(CudaAllocatorTest, RecordStreamReachesUpstreamForRecordedTensorsToo) {
  Sink sink;
  const RecordingScope recording(sink);
  const c10::DataPtr data = base_.allocate(64);
  base_.recordStream(data, c10::cuda::CUDAStream(c10::cuda::CUDAStream::UNCHECKED,
                                                 c10::Stream(c10::Stream::DEFAULT, c10::Device(c10::kCUDA, 0))));
  EXPECT_EQ(upstream_.stream_recorded_on, &FakeUpstream::Deleter) << "native ignores every other deleter";
  EXPECT_THAT(upstream_.freed, IsEmpty());
}

TEST_F(CudaAllocatorTest, DoesNotReportRequestsOfNothing) {
  Sink sink;
  const RecordingScope recording(sink);
  base_.allocate(0);
  base_.raw_alloc(0);
  EXPECT_THAT(sink.allocated, IsEmpty());
  EXPECT_THAT(upstream_.calls, ElementsAre("allocate", "raw_alloc"));
}

TEST_F(CudaAllocatorTest, TheLimitIsSharedWhenUpstreamStarts) {
  upstream_.is_initialized = false;
  allocator_.SetMemoryLimit(256_MiB);
  EXPECT_EQ(upstream_.fraction, 1);
  upstream_.is_initialized = true;
  base_.init(1);
  EXPECT_DOUBLE_EQ(upstream_.fraction, 0.25);
  EXPECT_EQ(base_.getMemoryFraction(0), 1) << "what the user has set";
  EXPECT_EQ(allocator_.memory_limit(), 256_MiB);
}

TEST_F(CudaAllocatorTest, AnOutOfMemoryOfUpstreamIsReportedOnceAndOfTorchsType) {
  int observed = 0;
  base_.attachOutOfMemoryObserver([&](int64_t, size_t, size_t, size_t) { ++observed; });
  upstream_.fail_next = 1;
  EXPECT_THROW(base_.allocate(64), c10::OutOfMemoryError);
  EXPECT_EQ(observed, 1);
  EXPECT_NE(base_.allocate(64).get(), nullptr);
}

}  // namespace
}  // namespace livepool
