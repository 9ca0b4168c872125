#include "livepool/pool/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "allocator/backend/failure_walk.h"
#include "allocator/backend/fake_backend.h"
#include "allocator/backend/stopping_backend.h"
#include "livepool/backend/cuda_backend.h"
#include "livepool/backend/host_backend.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

struct FakeMemory {
  FakeBackend backend;
};
struct HostMemory {
  HostBackend backend;
};
struct CudaMemory {
  FakeDriver driver;
  CudaBackend backend{FakeDriver::table(), 0};
};

template <typename Memory>
class ArenaTest : public testing::Test {
 protected:
  Backend& backend() { return memory_.backend; }
  Memory memory_;
};
using Memories = testing::Types<FakeMemory, HostMemory, CudaMemory>;
TYPED_TEST_SUITE(ArenaTest, Memories);

TYPED_TEST(ArenaTest, ReservesWholeGranulesAndMapsNothing) {
  for (const Bytes size : {0_B, 1_B, 511_B, 82262_B, 2_MiB + 1_B}) {
    const Arena arena(this->backend(), size);
    EXPECT_GE(arena.reserved(), std::max<Bytes>(size, 1));
    EXPECT_LT(arena.reserved(), size + this->backend().Granularity() + 1);
    EXPECT_EQ(arena.reserved() % this->backend().Granularity(), 0);
    EXPECT_EQ(arena.mapped(), 0);
    const auto base = reinterpret_cast<std::uintptr_t>(arena.base());
    EXPECT_EQ(base % static_cast<std::uintptr_t>(this->backend().Alignment()), 0u);
  }
}

TYPED_TEST(ArenaTest, GrowsToWholeGranulesAtStableAddresses) {
  Arena arena(this->backend(), 16_MiB);
  std::byte* const base = arena.base();
  Bytes mapped = 0;
  for (const Bytes size : {1_B, 511_B, 82262_B, 2_MiB + 1_B, 16_MiB}) {
    arena.Grow(size);
    EXPECT_GE(arena.mapped(), size);
    EXPECT_LT(arena.mapped(), size + this->backend().Granularity());
    EXPECT_GE(arena.mapped(), mapped);
    mapped = arena.mapped();
    this->backend().Fill(arena.base(), mapped, std::byte{1}, nullptr);
    EXPECT_EQ(arena.base(), base);
  }
}

TYPED_TEST(ArenaTest, GrowingToLessIsNothing) {
  Arena arena(this->backend(), 16_MiB);
  arena.Grow(4_MiB);
  arena.Grow(1_MiB);
  arena.Grow(0);
  EXPECT_EQ(arena.mapped(), 4_MiB);
}

TYPED_TEST(ArenaTest, RefusesToGrowAboveItsRange) {
  Arena arena(this->backend(), 4_MiB);
  arena.Grow(2_MiB);
  for (const Bytes size : {4_MiB + 1_B, std::numeric_limits<Bytes>::max()}) {
    try {
      arena.Grow(size);
      ADD_FAILURE() << "grew to " << size;
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.requested(), size);
      EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr(this->backend().Name()),
                                               testing::HasSubstr("4.00 MiB of address space")));
    }
  }
  EXPECT_EQ(arena.mapped(), 2_MiB);
  arena.Grow(4_MiB);
}

TYPED_TEST(ArenaTest, RefusesARangeThatCannotBe) {
  EXPECT_THROW(Arena(this->backend(), std::numeric_limits<Bytes>::max()), OutOfMemory);
}

TYPED_TEST(ArenaTest, TrimsToWholeGranulesAndGrowsAgain) {
  Arena arena(this->backend(), 16_MiB);
  std::byte* const base = arena.base();
  arena.Grow(16_MiB);
  EXPECT_EQ(arena.Trim(16_MiB), 0);
  const Bytes given_back = arena.Trim(2_MiB + 1_B);
  EXPECT_EQ(given_back, 16_MiB - arena.mapped());
  EXPECT_EQ(arena.mapped(), AlignUp(2_MiB + 1_B, this->backend().Granularity()));
  EXPECT_EQ(arena.Trim(2_MiB + 1_B), 0);
  arena.Trim();
  EXPECT_EQ(arena.mapped(), 0);
  arena.Grow(8_MiB);
  EXPECT_EQ(arena.base(), base);
  this->backend().Fill(base, 8_MiB, std::byte{2}, nullptr);
}

TYPED_TEST(ArenaTest, TrimsNothingWhilePinned) {
  Arena arena(this->backend(), 16_MiB);
  arena.Pin();
  arena.Pin();
  arena.Grow(4_MiB);
  EXPECT_EQ(arena.Trim(), 0);
  arena.Unpin();
  EXPECT_TRUE(arena.pinned());
  EXPECT_EQ(arena.Trim(), 0);
  EXPECT_EQ(arena.mapped(), 4_MiB);
  arena.Unpin();
  EXPECT_FALSE(arena.pinned());
  EXPECT_EQ(arena.Trim(), 4_MiB);
}

TYPED_TEST(ArenaTest, ContainsItsRangeMappedOrNot) {
  const Arena arena(this->backend(), 4_MiB);
  EXPECT_TRUE(arena.Contains(arena.base()));
  EXPECT_TRUE(arena.Contains(arena.base() + arena.reserved() - 1));
  EXPECT_FALSE(arena.Contains(arena.base() + arena.reserved()));
  EXPECT_FALSE(arena.Contains(arena.base() - 1));
  EXPECT_FALSE(arena.Contains(nullptr));
}

TYPED_TEST(ArenaTest, GrowsFromTwoThreads) {
  Arena arena(this->backend(), 32_MiB);
  const auto grow = [&](Bytes first) {
    for (Bytes size = first; size <= 32_MiB; size += 4_MiB) {
      arena.Grow(size);
      EXPECT_GE(arena.mapped(), size);
    }
  };
  std::thread even(grow, 4_MiB);
  std::thread odd(grow, 2_MiB);
  even.join();
  odd.join();
  EXPECT_EQ(arena.mapped(), 32_MiB);
}

// A pass that pins and grows has its memory, whatever a trimming thread does.
TYPED_TEST(ArenaTest, APinnedPassKeepsItsMemoryWhileOthersTrim) {
  Arena arena(this->backend(), 8_MiB);
  std::atomic<bool> done{false};
  std::thread trimmer([&] {
    while (!done) arena.Trim();
  });
  for (int pass = 0; pass < 100; ++pass) {
    arena.Pin();
    arena.Grow(4_MiB);
    this->backend().Fill(arena.base(), 4_MiB, std::byte{3}, nullptr);  // faults, or is misuse, without memory
    EXPECT_GE(arena.mapped(), 4_MiB);
    arena.Unpin();
  }
  done = true;
  trimmer.join();
  if constexpr (requires { this->memory_.driver; }) {
    EXPECT_THAT(this->memory_.driver.misuse(), testing::IsEmpty());
  }
}

TEST(ArenaRaceTest, APassThatPinsDuringATrimGetsItsMemoryBack) {
  StoppingBackend backend;
  Arena arena(backend, 1_MiB);
  arena.Grow(64_KiB);
  // The trim has seen that nobody pins, and has taken nothing away yet.
  RunBeside(
      backend, StoppingBackend::Call::kGranularity, [&] { arena.Trim(); },
      [&] {
        arena.Pin();
        arena.Grow(64_KiB);
      });
  EXPECT_EQ(arena.mapped(), 64_KiB);
  EXPECT_EQ(backend.memory().mapped(), 64_KiB);
}

TEST(ArenaRaceTest, TwoThreadsNeverMapTheSameBytes) {
  StoppingBackend backend;
  Arena arena(backend, 1_MiB);
  RunBeside(backend, StoppingBackend::Call::kMap, [&] { arena.Grow(64_KiB); }, [&] { arena.Grow(128_KiB); });
  EXPECT_EQ(arena.mapped(), 128_KiB);
  EXPECT_EQ(backend.memory().mapped(), 128_KiB);
  EXPECT_THAT(backend.memory().misuse(), testing::IsEmpty());
}

TEST(ArenaFailureTest, AFailedGrowChangesNothing) {
  FakeBackend backend({.capacity = 64_KiB});
  Arena arena(backend, 1_MiB);
  arena.Grow(32_KiB);
  arena.base()[0] = std::byte{42};
  EXPECT_THROW(arena.Grow(128_KiB), OutOfMemory);
  EXPECT_EQ(arena.mapped(), 32_KiB);
  EXPECT_EQ(backend.mapped(), 32_KiB);
  EXPECT_EQ(arena.base()[0], std::byte{42});
  arena.Grow(64_KiB);
  EXPECT_EQ(arena.mapped(), 64_KiB);
}

TEST(ArenaFailureTest, LeavesItsMemoryBehind) {
  FakeBackend backend;
  { Arena(backend, 1_MiB).Grow(32_KiB); }
  EXPECT_EQ(backend.mapped(), 32_KiB);
}

// Field fault 9.
TEST(ArenaFailureTest, SurvivesEverySingleDriverFailure) {
  WalkOverEveryCall({}, /*at_least=*/30, [](FailureWalk& walk) {
    std::unique_ptr<CudaBackend> backend;
    std::unique_ptr<Arena> arena;
    walk.Step([&] { backend = std::make_unique<CudaBackend>(FakeDriver::table(), 0); });
    walk.Step([&] { arena = std::make_unique<Arena>(*backend, 16_MiB); });
    walk.Step([&] { arena->Grow(3_MiB); });
    walk.Step([&] { arena->Grow(9_MiB); });
    walk.Step([&] { arena->Trim(1_MiB); });
    walk.Step([&] { arena->Grow(12_MiB); });
    EXPECT_EQ(arena->mapped(), 12_MiB);
    EXPECT_EQ(walk.driver().mapped(), 12_MiB);
    // What was refused in the last steps is done now.
    walk.Heal();
    arena->Grow(14_MiB);
    arena->Trim();
    const int calls = walk.driver().calls("MemUnmap");
    arena.reset();
    EXPECT_EQ(walk.driver().calls("MemUnmap"), calls) << "destruction makes no call";
  });
}

}  // namespace
}  // namespace livepool
