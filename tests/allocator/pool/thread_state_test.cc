#include "livepool/pool/thread_state.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace livepool {
namespace {

class IgnoringSink final : public TraceSink {
  void OnAlloc(DeviceId, const void*, Bytes, StreamHandle) override {}
  void OnFree(DeviceId, const void*) override {}
};

TEST(ThreadStateTest, EachThreadHasItsOwn) {
  const void* const here = CurrentThreadToken();
  EXPECT_EQ(here, CurrentThreadToken());
  IgnoringSink sink;
  const RecordingScope recording(sink);
  std::thread([&] {
    EXPECT_NE(CurrentThreadToken(), here);
    EXPECT_EQ(CurrentThread().sink, nullptr);
    EXPECT_EQ(CurrentThread().pass, nullptr);
  }).join();
}

TEST(ThreadStateTest, ARecordingEndsWithItsScopeAlsoOnExceptions) {
  IgnoringSink outer, inner;
  const RecordingScope recording(outer);
  try {
    const RecordingScope nested(inner);
    EXPECT_EQ(CurrentThread().sink, &inner);
    throw std::runtime_error("the callable failed");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(CurrentThread().sink, &outer);
}

// A recording is one of upstream's memory.
TEST(ThreadStateTest, NothingIsServedWhileARecordingRuns) {
  class NobodyServes final : public Server {
   public:
    NobodyServes() : Server({}) {}
    std::byte* Serve(Bytes, StreamHandle, const void*) override { return nullptr; }
    PlannedArena* arena() const override { return nullptr; }
    Bytes height() const override { return 0; }
  } pass;
  CurrentThread().pass = &pass;
  {
    IgnoringSink sink;
    const RecordingScope recording(sink);
    EXPECT_EQ(CurrentThread().pass, nullptr);
  }
  EXPECT_EQ(CurrentThread().pass, &pass);
  CurrentThread().pass = nullptr;
}

}  // namespace
}  // namespace livepool
