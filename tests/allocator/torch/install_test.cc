#include "livepool/torch/install.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "livepool/base/error.h"

namespace livepool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::uint64_t Version(std::uint64_t major, std::uint64_t minor, std::uint64_t patch) {
  return major << 56 | minor << 48 | patch << 40;
}

TEST(TorchVersionTest, AnyPatchOfTheSameMinorWillDo) {
  EXPECT_NO_THROW(detail::CheckTorchVersion(Version(2, 11, 3), Version(2, 11, 0)));
  EXPECT_NO_THROW(CheckTorchVersion());
}

TEST(TorchVersionTest, AnotherMinorIsRefusedByName) {
  for (const std::uint64_t running : {Version(2, 12, 0), Version(2, 10, 1), Version(3, 11, 0)}) {
    EXPECT_THAT([&] { detail::CheckTorchVersion(running, Version(2, 11, 0)); },
                ThrowsMessage<UnsupportedTorch>(AllOf(HasSubstr("built for torch 2.11"), HasSubstr("is running"))));
  }
}

TEST(InstallTest, BeforeItPoolsAreRefusedAndAfterItTheyAreThere) {
  // ctest runs each case in a process of its own, so nothing is installed yet.
  if (Installed(DeviceId::Kind::kHost)) GTEST_SKIP() << "another case of this process has installed livepool";
  EXPECT_THAT([] { PoolOf({}); }, ThrowsMessage<NotInstalled>(HasSubstr("livepool.install(\"cpu\")")));
  Install(DeviceId::Kind::kHost);
  EXPECT_TRUE(Installed(DeviceId::Kind::kHost));
  const ArenaPool* pool = &PoolOf({});
  Install(DeviceId::Kind::kHost);  // does nothing
  EXPECT_EQ(&PoolOf({}), pool);
  EXPECT_THAT(AllPools(), ::testing::Contains(pool));
}

}  // namespace
}  // namespace livepool
