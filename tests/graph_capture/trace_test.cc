#include "livepool/graph/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace livepool {
namespace {

using Kind = TraceEvent::Kind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TraceTest : public ::testing::Test {
 protected:
  const void* At(int i) const { return &memory_[i]; }
  void Alloc(int i, Bytes size) { writer_.OnAlloc(kHost, At(i), size, nullptr); }
  void Free(int i) { writer_.OnFree(kHost, At(i)); }

  static constexpr DeviceId kHost{DeviceId::Kind::kHost, 0};
  static constexpr DeviceId kCuda{DeviceId::Kind::kCuda, 0};
  char memory_[8] = {};
  TraceWriter writer_{kHost, nullptr};
};

TEST_F(TraceTest, WritesEventsInOrderAndTimesThem) {
  EXPECT_EQ(writer_.BeginOp(), 0);
  Alloc(0, 100);
  Alloc(1, 200);
  Free(1);
  writer_.EndOp();
  EXPECT_EQ(writer_.BeginOp(), 1);
  Alloc(2, 300);
  writer_.EndOp();
  Free(0);
  const Trace& trace = writer_.trace();
  EXPECT_THAT(trace.events,
              ElementsAre(TraceEvent{Kind::kOpBegin, 0}, TraceEvent{Kind::kAlloc, 0}, TraceEvent{Kind::kAlloc, 1},
                          TraceEvent{Kind::kFree, 1}, TraceEvent{Kind::kOpEnd, 0}, TraceEvent{Kind::kOpBegin, 1},
                          TraceEvent{Kind::kAlloc, 2}, TraceEvent{Kind::kOpEnd, 1}, TraceEvent{Kind::kFree, 0}));
  EXPECT_EQ(trace.ops, 2);
  EXPECT_THAT(
      trace.allocations,
      ElementsAre(TraceAllocation{.size = 100, .op = 0, .nth = 0, .birth = 1, .death = 8},
                  TraceAllocation{.size = 200, .op = 0, .nth = 1, .birth = 2, .death = 3},
                  TraceAllocation{.size = 300, .op = 1, .nth = 0, .birth = 6, .death = TraceAllocation::kNeverFreed}));
}

TEST_F(TraceTest, AllocationsBetweenOpsBelongToNone) {
  Alloc(0, 64);
  writer_.BeginOp();
  writer_.EndOp();
  Alloc(1, 64);
  EXPECT_EQ(writer_.trace().allocations[0].op, -1);
  EXPECT_EQ(writer_.trace().allocations[1].op, -1);
  EXPECT_EQ(writer_.trace().allocations[1].nth, 0);
}

TEST_F(TraceTest, MarksAllocationsOnOtherStreams) {
  int other = 0;
  writer_.OnAlloc(kHost, At(0), 64, &other);
  Alloc(1, 64);
  EXPECT_FALSE(writer_.trace().allocations[0].same_stream);
  EXPECT_TRUE(writer_.trace().allocations[1].same_stream);
}

TEST_F(TraceTest, IgnoresOtherDevicesAndWhatWasThereBefore) {
  writer_.OnAlloc(kCuda, At(0), 64, nullptr);
  writer_.OnFree(kCuda, At(0));
  Free(1);
  EXPECT_THAT(writer_.trace().events, IsEmpty());
  Alloc(0, 64);
  writer_.OnFree(kCuda, At(0));
  EXPECT_EQ(writer_.LiveAt(At(0)), 0);
}

TEST_F(TraceTest, KnowsWhatLivesAtAnAddress) {
  EXPECT_EQ(writer_.LiveAt(At(0)), -1);
  Alloc(0, 64);
  EXPECT_EQ(writer_.LiveAt(At(0)), 0);
  Free(0);
  EXPECT_EQ(writer_.LiveAt(At(0)), -1);
  Alloc(0, 64);
  EXPECT_EQ(writer_.LiveAt(At(0)), 1);
}

// Another thread has freed the first one, unseen, and upstream has given its address away again.
TEST_F(TraceTest, AnAddressThatComesAgainIsANewAllocation) {
  Alloc(0, 64);
  Alloc(0, 64);
  Free(0);
  EXPECT_EQ(writer_.trace().allocations[0].death, TraceAllocation::kNeverFreed);
  EXPECT_EQ(writer_.trace().allocations[1].death, 2);
}

//   bytes, each rounded to 64
//   256 |      +-2-+
//   128 |   +--1--+|
//    64 | +-0-----------+     The peak is 64 + 128 + 64, as 1 is gone when the last one comes.
TEST_F(TraceTest, AddsUpAndFindsThePeak) {
  Alloc(0, 1);
  Alloc(1, 65);
  Alloc(2, 64);
  Free(1);
  Alloc(3, 10);
  Free(2);
  Free(0);
  Free(3);
  const Trace& trace = writer_.trace();
  EXPECT_EQ(trace.SumBytes(64), 64 + 128 + 64 + 64);
  EXPECT_EQ(trace.SumBytes(512), 4 * 512);
  EXPECT_EQ(trace.LivePeak(64, {}), 256);
  EXPECT_EQ(trace.LivePeak(512, {}), 3 * 512);
}

TEST_F(TraceTest, ThePeakCountsOutputsButNotWhatStaysForGood) {
  Alloc(0, 64);   // an output, alive when the pass ends
  Alloc(1, 512);  // a library's workspace: for good
  Alloc(2, 128);
  Free(2);
  EXPECT_EQ(writer_.trace().LivePeak(64, {0}), 192);
  EXPECT_EQ(writer_.trace().LivePeak(64, {}), 128);
  EXPECT_EQ(writer_.trace().LivePeak(64, {0, 1}), 64 + 512 + 128);
}

TEST(EmptyTraceTest, HasNoPeak) {
  EXPECT_EQ(Trace().LivePeak(64, {}), 0);
  EXPECT_EQ(Trace().SumBytes(64), 0);
}

}  // namespace
}  // namespace livepool
