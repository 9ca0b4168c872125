#include "livepool/backend/cuda_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "allocator/backend/fake_driver.h"

namespace livepool {
namespace {

TEST(CudaDriverTest, IsCompleteOrSaysWhyNot) {
  std::string why_not;
  const CudaDriver* const driver = LoadCudaDriver(&why_not);
  EXPECT_EQ(LoadCudaDriver(nullptr), driver) << "loaded once";
  if (driver == nullptr) {
    EXPECT_THAT(why_not, testing::AnyOf(testing::HasSubstr("driver"), testing::HasSubstr("cuInit")));
    return;
  }
  EXPECT_EQ(why_not, "");
#define LIVEPOOL_EXPECT_SET(member, symbol, parameters) EXPECT_NE(driver->member, nullptr) << symbol;
  LIVEPOOL_CUDA_DRIVER_FUNCTIONS(LIVEPOOL_EXPECT_SET)
#undef LIVEPOOL_EXPECT_SET
}

TEST(CudaDriverTest, DescribesResultsInTheDriversWords) {
  const FakeDriver driver;
  EXPECT_EQ(DescribeResult(FakeDriver::table(), cuda::kOutOfMemory), "out of memory (error 2)");
}

TEST(CudaDriverTest, DescribesResultsAfterTheDriverShutDown) {
  FakeDriver driver;
  driver.ShutDown();
  EXPECT_EQ(DescribeResult(FakeDriver::table(), cuda::kDeinitialized), "unknown (error 4)");
}

}  // namespace
}  // namespace livepool
