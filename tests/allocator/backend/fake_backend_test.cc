#include "allocator/backend/fake_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace livepool {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(FakeBackendTest, RefusesMoreThanItsCapacity) {
  FakeBackend backend({.capacity = 8_KiB});
  std::byte* const base = backend.Reserve(16_KiB);
  EXPECT_THROW(backend.Map(base, 12_KiB), OutOfMemory);
  EXPECT_EQ(backend.mapped(), 0);
  backend.Map(base, 8_KiB);
  EXPECT_THROW(backend.Map(base + 8_KiB, 4_KiB), OutOfMemory);
  EXPECT_THAT(backend.misuse(), IsEmpty());
}

TEST(FakeBackendTest, FailsTheNthCallOnce) {
  FakeBackend backend;
  backend.FailNthCall(2);
  std::byte* const base = backend.Reserve(8_KiB);
  EXPECT_THROW(backend.Map(base, 4_KiB), OutOfMemory);
  backend.Map(base, 4_KiB);
  EXPECT_TRUE(backend.IsMapped(base));
  EXPECT_FALSE(backend.IsMapped(base + 4_KiB));
}

TEST(FakeBackendTest, MarksMemoryThatComesAndGoes) {
  FakeBackend backend;
  std::byte* const base = backend.Reserve(4_KiB);
  backend.Map(base, 4_KiB);
  EXPECT_EQ(base[0], FakeBackend::kFresh);
  backend.Unmap(base, 4_KiB);
  EXPECT_EQ(base[0], FakeBackend::kGone);
}

TEST(FakeBackendTest, RecordsFillsWithTheirStream) {
  FakeBackend backend;
  std::byte* const base = backend.Reserve(4_KiB);
  backend.Map(base, 4_KiB);
  StreamHandle const stream = &backend;
  backend.Fill(base + 64, 10, std::byte{0xFF}, stream);
  EXPECT_THAT(backend.fills(), ElementsAre(FakeBackend::FillCall{base + 64, 10, std::byte{0xFF}, stream}));
  EXPECT_EQ(base[63], FakeBackend::kFresh);
  EXPECT_EQ(base[64], std::byte{0xFF});
}

TEST(FakeBackendTest, NoticesBrokenContracts) {
  FakeBackend backend;
  std::byte* const base = backend.Reserve(8_KiB);
  backend.Map(base, 4_KiB);
  backend.Map(base, 8_KiB);
  backend.Map(base + 4_KiB, 8_KiB);
  backend.Map(base + 4_KiB, 1_KiB);
  backend.Unmap(base, 8_KiB);
  backend.Fill(base, 5_KiB, std::byte{0}, nullptr);
  EXPECT_THAT(backend.misuse(),
              ElementsAre(HasSubstr("Map"), HasSubstr("Map"), HasSubstr("Map"), HasSubstr("Unmap"), HasSubstr("Fill")));
  EXPECT_EQ(backend.mapped(), 4_KiB) << "misuse has no effect";
}

}  // namespace
}  // namespace livepool
