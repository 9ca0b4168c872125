// Every single driver call fails once, in turn, in a scenario that reserves, grows, trims and grows again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "allocator/backend/fake_driver.h"
#include "livepool/backend/cuda_backend.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

// Runs `step`; after a failure the books are as they were before, and the same step then works.
void RunStep(const FakeDriver& driver, const std::function<void()>& step) {
  const Bytes mapped_before = driver.mapped();
  try {
    step();
    return;
  } catch (const Error&) {
    ASSERT_NE(driver.failed_function(), "") << "failed without an injected failure";
  }
  EXPECT_EQ(driver.mapped(), mapped_before);
  EXPECT_EQ(driver.allocated(), mapped_before);
  EXPECT_EQ(driver.open_handles(), 0);
  EXPECT_NO_THROW(step());
}

class FailureWalk : public testing::TestWithParam<bool> {};

TEST_P(FailureWalk, NothingIsLeakedOrLost) {
  int n = 1;
  for (bool failed = true; failed; ++n) {
    FakeDriver driver({.unmaps_many_at_once = GetParam()});
    driver.FailNthCall(n);
    std::unique_ptr<CudaBackend> backend;
    std::byte* base = nullptr;
    const std::vector<std::function<void()>> steps{
        [&] { backend = std::make_unique<CudaBackend>(FakeDriver::table(), 0); },
        [&] { base = backend->Reserve(16_MiB); },
        [&] { backend->Map(base, 4_MiB); },
        [&] { backend->Map(base + 4_MiB, 6_MiB); },
        [&] { backend->Unmap(base + 2_MiB, 8_MiB); },
        [&] { backend->Map(base + 2_MiB, 8_MiB); },
        [&] { backend->Map(base + 10_MiB, 2_MiB); },
    };
    for (const auto& step : steps) RunStep(driver, step);

    const std::string failure = driver.failed_function();
    SCOPED_TRACE("call " + std::to_string(n) + " failed: " + failure);
    EXPECT_THAT(driver.misuse(), testing::IsEmpty());
    EXPECT_EQ(driver.retained_contexts(), 1);
    // A driver that refuses to restore the caller's context cannot be helped.
    EXPECT_EQ(driver.pushed_contexts(), failure == "CtxPopCurrent" ? 1 : 0);
    // The last Map has nobody after it that could release what was refused in it.
    EXPECT_LE(driver.open_handles(), failure == "MemRelease" ? 1 : 0);
    EXPECT_EQ(driver.mapped(), 12_MiB);
    backend->Unmap(base, 12_MiB);
    EXPECT_EQ(driver.mapped(), 0);
    backend->Map(base, 2_MiB);
    EXPECT_EQ(driver.allocated(), 2_MiB);
    EXPECT_EQ(driver.open_handles(), 0);
    backend.reset();
    failed = !failure.empty();
    if (HasFailure()) return;
  }
  EXPECT_GT(n, 40) << "the walk ended early";
}

INSTANTIATE_TEST_SUITE_P(UnmapsMany, FailureWalk, testing::Bool());

}  // namespace
}  // namespace livepool
