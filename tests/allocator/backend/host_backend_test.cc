#include "livepool/backend/host_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>

#include "allocator/backend/host_probe.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

using testing::HasSubstr;

// The value of `field` for the mapping that has `address` inside, from /proc/self/smaps; empty: none.
std::string MappingField(const std::byte* address, const std::string& field) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    if (words >> std::hex >> begin >> dash >> end && dash == '-') inside = begin <= wanted && wanted < end;
    if (inside && line.starts_with(field + ":")) return line.substr(field.size() + 1);
  }
  return "";
}

TEST(HostBackendTest, RoundsToCacheLinesAndHugePages) {
  const HostBackend backend;
  EXPECT_EQ(backend.Name(), "host");
  EXPECT_EQ(backend.Alignment(), 64);
  EXPECT_EQ(backend.Granularity(), 2_MiB);
}

TEST(HostBackendTest, AsksForHugePages) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) GTEST_SKIP() << "the kernel has no huge pages";
  HostBackend backend;
  std::byte* const base = backend.Reserve(4_MiB);
  backend.Map(base, 4_MiB);
  EXPECT_THAT(MappingField(base, "VmFlags"), HasSubstr(" hg"));
}

TEST(HostBackendTest, UnmapReturnsPagesToTheKernel) {
  HostBackend backend;
  std::byte* const base = backend.Reserve(64_MiB);
  backend.Map(base, 64_MiB);
  backend.Fill(base, 64_MiB, std::byte{1}, nullptr);
  EXPECT_THAT(MappingField(base, "Rss"), HasSubstr(" 65536 kB"));
  backend.Unmap(base, 64_MiB);
  EXPECT_THAT(MappingField(base, "Rss"), HasSubstr(" 0 kB"));
  EXPECT_FALSE(IsReadable(base));
}

TEST(HostBackendTest, ARefusalNamesTheLimit) {
  HostBackend backend;
  std::byte* const base = backend.Reserve(1_GiB);
  const WritableMemoryLimit limit(64_MiB);
  try {
    backend.Map(base, 1_GiB);
    ADD_FAILURE() << "mapped more than the limit";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr("1.00 GiB"), HasSubstr("Cannot allocate memory"), HasSubstr("ulimit -d")));
  }
}

}  // namespace
}  // namespace livepool
