// The fake driver must notice what it is there to notice: each kind of misuse, once.
#include "allocator/backend/fake_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace livepool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FakeDriverTest : public testing::Test {
 protected:
  static constexpr std::size_t kPage = 2 << 20;

  FakeDriverTest() {
    EXPECT_EQ(cu_.MemAddressReserve(&address_, 4 * kPage, kPage, 0, 0), cuda::kSuccess);
    EXPECT_EQ(cu_.MemCreate(&page_, kPage, &prop_, 0), cuda::kSuccess);
  }
  void ExpectMisuse(cuda::Result result, const std::string& text) {
    EXPECT_NE(result, cuda::kSuccess);
    EXPECT_THAT(driver_.misuse(), ElementsAre(HasSubstr(text)));
  }

  FakeDriver driver_;
  const CudaDriver& cu_ = FakeDriver::table();
  const cuda::AllocationProp prop_;
  const cuda::AccessDesc access_;
  cuda::DevicePtr address_ = 0;
  cuda::PageHandle page_ = 0;
};

TEST_F(FakeDriverTest, KeepsAPageWhileItsHandleOrItsMappingLives) {
  EXPECT_EQ(cu_.MemMap(address_, kPage, 0, page_, 0), cuda::kSuccess);
  EXPECT_EQ(cu_.MemRelease(page_), cuda::kSuccess);
  EXPECT_EQ(driver_.allocated(), 2_MiB);
  EXPECT_EQ(cu_.MemUnmap(address_, kPage), cuda::kSuccess);
  EXPECT_EQ(driver_.allocated(), 0);
  EXPECT_THAT(driver_.misuse(), IsEmpty());
}

TEST_F(FakeDriverTest, NoticesADoubleMap) {
  cuda::PageHandle other = 0;
  cu_.MemCreate(&other, kPage, &prop_, 0);
  cu_.MemMap(address_, kPage, 0, page_, 0);
  ExpectMisuse(cu_.MemMap(address_, kPage, 0, other, 0), "mapped already");
}

TEST_F(FakeDriverTest, NoticesAMapOutsideAReservation) {
  ExpectMisuse(cu_.MemMap(address_ + 4 * kPage, kPage, 0, page_, 0), "not reserved");
}

TEST_F(FakeDriverTest, NoticesAnUnmapOfNothing) { ExpectMisuse(cu_.MemUnmap(address_, kPage), "whole mappings"); }

TEST_F(FakeDriverTest, NoticesAnUnmapOfHalfAMapping) {
  cu_.MemMap(address_, kPage, 0, page_, 0);
  ExpectMisuse(cu_.MemUnmap(address_, kPage / 2), "whole mappings");
}

TEST_F(FakeDriverTest, NoticesTheUseOfAReleasedHandle) {
  cu_.MemRelease(page_);
  ExpectMisuse(cu_.MemMap(address_, kPage, 0, page_, 0), "released");
}

TEST_F(FakeDriverTest, NoticesADoubleRelease) {
  cu_.MemRelease(page_);
  ExpectMisuse(cu_.MemRelease(page_), "released before");
}

TEST_F(FakeDriverTest, NoticesAWriteWithoutAccess) {
  cuda::Context context = nullptr;
  cu_.PrimaryCtxRetain(&context, 0);
  cu_.CtxPushCurrent(context);
  cu_.MemMap(address_, kPage, 0, page_, 0);
  ExpectMisuse(cu_.MemsetD8Async(address_, 0, kPage, nullptr), "without access");
}

TEST_F(FakeDriverTest, NoticesAWriteWithoutAContext) {
  cu_.MemMap(address_, kPage, 0, page_, 0);
  cu_.MemSetAccess(address_, kPage, &access_, 1);
  ExpectMisuse(cu_.MemsetD8Async(address_, 0, kPage, nullptr), "no context");
}

TEST_F(FakeDriverTest, RunsOutOfMemoryAtItsCapacity) {
  cuda::PageHandle other = 0;
  EXPECT_EQ(cu_.MemCreate(&other, std::size_t{1} << 30, &prop_, 0), cuda::kOutOfMemory);
  EXPECT_EQ(cu_.MemCreate(&other, (std::size_t{1} << 30) - kPage, &prop_, 0), cuda::kSuccess);
  EXPECT_THAT(driver_.misuse(), IsEmpty());
}

TEST_F(FakeDriverTest, FailsTheNthCallOnceAndWithoutEffect) {
  driver_.FailNthCall(2);
  EXPECT_EQ(cu_.MemMap(address_, kPage, 0, page_, 0), cuda::kSuccess);
  EXPECT_EQ(cu_.MemUnmap(address_, kPage), cuda::kOutOfMemory);
  EXPECT_EQ(driver_.failed_function(), "MemUnmap");
  EXPECT_EQ(driver_.mapped(), 2_MiB);
  EXPECT_EQ(cu_.MemUnmap(address_, kPage), cuda::kSuccess);
}

TEST(FakeDriverLifeTest, AnswersAsAShutDownDriverWhereThereIsNone) {
  EXPECT_EQ(FakeDriver::table().Init(0), cuda::kDeinitialized);
  const FakeDriver driver;
  EXPECT_EQ(FakeDriver::table().Init(0), cuda::kSuccess);
}

}  // namespace
}  // namespace livepool
