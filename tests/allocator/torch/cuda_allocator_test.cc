#include "cuda_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "allocator/torch/cuda_fake_upstream.h"
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
  CudaAllocator& allocator_ = *new CudaAllocator(upstream_);
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

struct Frees final : TraceSink {
  void OnAlloc(DeviceId, const void*, Bytes, StreamHandle) override { ++allocs; }
  void OnFree(DeviceId device, const void* address) override { freed.emplace_back(device.index, address); }
  int allocs = 0;
  std::vector<std::pair<int, const void*>> freed;
};

TEST_F(CudaAllocatorTest, ReportsTheFreesOfARecordingThread) {
  using c10_compat::TraceEntry;
  const auto entry = [](TraceEntry::Action action) { return TraceEntry(action, 1, 0x1000, 64, nullptr, kNoPool, 0); };
  allocator_.EnsureFreeTracking();
  allocator_.EnsureFreeTracking();
  EXPECT_THAT(upstream_.calls, ElementsAre("attachAllocatorTraceTracker"));
  Frees frees;
  upstream_.tracker(entry(TraceEntry::FREE_REQUESTED));  // not recording
  {
    const RecordingScope recording(frees);
    upstream_.tracker(entry(TraceEntry::ALLOC));
    upstream_.tracker(entry(TraceEntry::FREE_REQUESTED));
    upstream_.tracker(entry(TraceEntry::FREE_COMPLETED));
  }
  EXPECT_THAT(frees.freed, ElementsAre(std::pair<int, const void*>(1, reinterpret_cast<const void*>(0x1000))));
}

TEST_F(CudaAllocatorTest, DoesNotReportRequestsOfNothing) {
  Frees frees;
  const RecordingScope recording(frees);
  base_.allocate(0);
  base_.raw_alloc(0);
  EXPECT_EQ(frees.allocs, 0);
  EXPECT_THAT(upstream_.calls, ElementsAre("allocate", "raw_alloc"));
}

}  // namespace
}  // namespace livepool
