// Field fault 9: every single driver call fails, in turn, in a scenario that reserves, grows, trims and grows again.
// The same through pools and passes: tests/allocator/pool/pool_failure_test.cc.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "allocator/backend/failure_walk.h"
#include "livepool/backend/cuda_backend.h"

namespace livepool {
namespace {

class CudaBackendFailureTest : public testing::TestWithParam<bool> {};

TEST_P(CudaBackendFailureTest, NothingIsLeakedOrLost) {
  WalkOverEveryCall({.unmaps_many_at_once = GetParam()}, /*at_least=*/40, [](FailureWalk& walk) {
    std::unique_ptr<CudaBackend> backend;
    std::byte* base = nullptr;
    walk.Step([&] { backend = std::make_unique<CudaBackend>(FakeDriver::table(), 0); });
    walk.Step([&] { base = backend->Reserve(16_MiB); });
    walk.Step([&] { backend->Map(base, 4_MiB); });
    walk.Step([&] { backend->Map(base + 4_MiB, 6_MiB); });
    walk.Step([&] { backend->Unmap(base + 2_MiB, 8_MiB); });
    walk.Step([&] { backend->Map(base + 2_MiB, 8_MiB); });
    walk.Step([&] { backend->Map(base + 10_MiB, 2_MiB); });
    EXPECT_EQ(walk.driver().mapped(), 12_MiB);
    EXPECT_EQ(walk.driver().retained_contexts(), 1 + walk.driver().refused("PrimaryCtxRelease"));
    // What was refused in the last steps is done now.
    walk.Heal();
    backend->Map(base + 12_MiB, 2_MiB);
    backend->Unmap(base, 14_MiB);
    backend.reset();
  });
}

INSTANTIATE_TEST_SUITE_P(UnmapsMany, CudaBackendFailureTest, testing::Bool());

}  // namespace
}  // namespace livepool
