#include "livepool/backend/cuda_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "allocator/backend/fake_driver.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

template <typename Exception, typename Callable>
std::string MessageOf(Callable callable) {
  try {
    callable();
  } catch (const Exception& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

class CudaBackendTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_THAT(driver_.misuse(), IsEmpty()); }
  FakeDriver driver_;
};

TEST_F(CudaBackendTest, TakesTheGranularityFromTheDriver) {
  const CudaBackend backend(FakeDriver::table(), 1);
  EXPECT_EQ(backend.Name(), "cuda:1");
  EXPECT_EQ(backend.Granularity(), 2_MiB);
  EXPECT_EQ(backend.Alignment(), 512);
}

TEST_F(CudaBackendTest, RefusesAMissingDevice) {
  EXPECT_THAT(MessageOf<Error>([] { CudaBackend(FakeDriver::table(), 7); }),
              AllOf(HasSubstr("cuda:7"), HasSubstr("cuDeviceGet"), HasSubstr("CUDA_VISIBLE_DEVICES")));
  EXPECT_EQ(driver_.retained_contexts(), 0);
}

TEST_F(CudaBackendTest, GivesTheContextBackWhenItCannotOpen) {
  driver_.FailEvery("MemGetAllocationGranularity", cuda::kInvalidValue);
  EXPECT_THROW(CudaBackend(FakeDriver::table(), 0), Error);
  EXPECT_EQ(driver_.retained_contexts(), 0);
  EXPECT_EQ(driver_.pushed_contexts(), 0);
}

TEST(CudaBackendOnOldDeviceTest, RefusesADeviceThatCannotMapMemory) {
  const FakeDriver driver({.can_map_memory = false});
  EXPECT_THAT(MessageOf<Error>([] { CudaBackend(FakeDriver::table(), 0); }), HasSubstr("virtual memory management"));
}

TEST_F(CudaBackendTest, GivesAccessToItsOwnDevice) {
  CudaBackend backend(FakeDriver::table(), 1);
  std::byte* const base = backend.Reserve(2_MiB);
  backend.Map(base, 2_MiB);
  EXPECT_TRUE(driver_.IsAccessible(base, /*device=*/1));
  EXPECT_FALSE(driver_.IsAccessible(base, /*device=*/0));
}

TEST_F(CudaBackendTest, SetsAccessAndUnmapsOncePerRange) {
  CudaBackend backend(FakeDriver::table(), 0);
  std::byte* const base = backend.Reserve(1_GiB);
  backend.Map(base, 150_MiB);
  EXPECT_EQ(driver_.calls("MemCreate"), 75);
  EXPECT_EQ(driver_.calls("MemSetAccess"), 1);
  backend.Unmap(base, 150_MiB);
  EXPECT_EQ(driver_.calls("MemUnmap"), 1);
  EXPECT_EQ(driver_.allocated(), 0);
}

TEST_F(CudaBackendTest, OutOfMemorySaysWhatWasAskedAndWhatIsFree) {
  CudaBackend backend(FakeDriver::table(), 1);
  std::byte* const base = backend.Reserve(4_GiB);
  backend.Map(base, 512_MiB);
  EXPECT_THAT(MessageOf<OutOfMemory>([&] { backend.Map(base + 512_MiB, 2_GiB); }),
              AllOf(HasSubstr("cuda:1"), HasSubstr("2.00 GiB"), HasSubstr("cuMemCreate: out of memory (error 2)"),
                    HasSubstr("512.00 MiB of 1.00 GiB are free")));
}

// A stream may be capturing when memory runs short: then nothing may be unmapped.
TEST_F(CudaBackendTest, RunningOutOfMemoryUnmapsNothing) {
  CudaBackend backend(FakeDriver::table(), 0);
  std::byte* const base = backend.Reserve(4_GiB);
  EXPECT_THROW(backend.Map(base, 2_GiB), OutOfMemory);
  EXPECT_EQ(driver_.calls("MemMap"), 0);
  EXPECT_EQ(driver_.calls("MemUnmap"), 0);
  EXPECT_EQ(driver_.allocated(), 0);
}

TEST_F(CudaBackendTest, RefusesAddressesThatItDidNotReserve) {
  CudaBackend backend(FakeDriver::table(), 0);
  std::byte* const base = backend.Reserve(4_MiB);
  EXPECT_THROW(backend.Map(base + 2_MiB, 4_MiB), Error);
  EXPECT_EQ(driver_.calls("MemCreate"), 0);
}

TEST_F(CudaBackendTest, TakesOverPagesThatTheDriverRefusedToUnmap) {
  CudaBackend backend(FakeDriver::table(), 0);
  std::byte* const base = backend.Reserve(8_MiB);
  backend.Map(base, 4_MiB);
  driver_.FailEvery("MemUnmap", cuda::kInvalidValue);
  backend.Unmap(base, 4_MiB);
  driver_.Heal();
  backend.Map(base, 8_MiB);
  EXPECT_EQ(driver_.calls("MemCreate"), 4) << "two pages were still there";
  backend.Unmap(base, 8_MiB);
  EXPECT_EQ(driver_.allocated(), 0);
}

TEST_F(CudaBackendTest, ReleasesHandlesLaterThatTheDriverRefusedToRelease) {
  CudaBackend backend(FakeDriver::table(), 0);
  std::byte* const base = backend.Reserve(8_MiB);
  driver_.FailEvery("MemRelease", cuda::kInvalidValue);
  backend.Map(base, 4_MiB);
  EXPECT_EQ(driver_.open_handles(), 2);
  driver_.Heal();
  backend.Map(base + 4_MiB, 2_MiB);
  EXPECT_EQ(driver_.open_handles(), 0);
}

TEST_F(CudaBackendTest, IsSilentAfterTheDriverShutDown) {
  auto backend = std::make_unique<CudaBackend>(FakeDriver::table(), 0);
  std::byte* const base = backend->Reserve(8_MiB);
  backend->Map(base, 4_MiB);
  driver_.ShutDown();
  backend->Fill(base, 4_MiB, std::byte{0xFF}, nullptr);
  backend->Unmap(base, 4_MiB);
  EXPECT_THROW(backend->Map(base + 4_MiB, 2_MiB), OutOfMemory);
  backend.reset();
}

TEST_F(CudaBackendTest, DestructionMakesNoDriverCall) {
  auto backend = std::make_unique<CudaBackend>(FakeDriver::table(), 0);
  std::byte* const base = backend->Reserve(2_MiB);
  backend->Map(base, 2_MiB);
  driver_.FailNthCall(1);
  backend.reset();
  EXPECT_EQ(driver_.failed_function(), "");
  EXPECT_EQ(driver_.mapped(), 2_MiB);
}

}  // namespace
}  // namespace livepool
