#include "livepool/pool/arena_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "allocator/pool/running_pass.h"
#include "allocator/pool/test_tables.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

using testing::AllBytesAre;
using testing::FakePool;
using testing::Loan;
using testing::OneOpEach;

// A slot of `size` bytes at `offset` of a held arena, live for ever or until it is freed.
std::byte* Occupy(PlannedArena& arena, Bytes offset, Bytes size) {
  return arena.Serve(arena.Bind(OneOpEach({{offset, size}}))->entries[0], false);
}

TEST(ArenaPoolTest, LendsAnArenaWithMemory) {
  const FakePool fake;
  PlannedArena& arena = fake.pool->Borrow(5000);
  EXPECT_GE(arena.arena().mapped(), 5000);
  EXPECT_FALSE(arena.TryHold()) << "the borrower holds it";
  fake.pool->Return(arena);
  EXPECT_TRUE(arena.TryHold());
  arena.Release();
}

TEST(ArenaPoolTest, APlanOfNothingNeedsNoMemory) {
  const FakePool fake;
  fake.pool->Return(fake.pool->Borrow(0));
  EXPECT_EQ(fake.backend->mapped(), 0);
}

// The memory is the largest plan, not the sum.
TEST(ArenaPoolTest, PassesAfterOneAnotherShareAnArena) {
  const FakePool fake;
  PlannedArena* first = nullptr;
  for (const Bytes height : {16_KiB, 64_KiB, 4_KiB, 32_KiB}) {
    const Loan arena(*fake.pool, height);
    if (first == nullptr) first = arena.get();
    EXPECT_EQ(arena.get(), first);
  }
  EXPECT_EQ(fake.backend->mapped(), 64_KiB);
  EXPECT_EQ(fake.pool->Stats().arena_bytes, 64_KiB);
  EXPECT_EQ(fake.pool->Stats().arena_peak_bytes, 64_KiB);
}

TEST(ArenaPoolTest, TwoPassesAtOnceGetTwoArenas) {
  const FakePool fake;
  const Loan outer(*fake.pool, 8_KiB);
  const Loan inner(*fake.pool, 8_KiB);
  EXPECT_NE(outer.get(), inner.get());
  std::thread([&] {
    const Loan other(*fake.pool, 8_KiB);
    EXPECT_NE(other.get(), outer.get());
    EXPECT_NE(other.get(), inner.get());
  }).join();
  EXPECT_EQ(fake.backend->mapped(), 24_KiB);
}

// A large and a small pass run at once, again and again, and begin in either order.
TEST(ArenaPoolTest, PassesOfTwoSizesKeepTheirArenas) {
  const FakePool fake;
  for (int round = 0; round < 4; ++round) {
    const Loan first(*fake.pool, round % 2 == 0 ? 64_KiB : 4_KiB);
    const Loan second(*fake.pool, round % 2 == 0 ? 4_KiB : 64_KiB);
  }
  EXPECT_EQ(fake.backend->mapped(), 68_KiB);
}

TEST(ArenaPoolTest, GrowsTheArenaThatLacksLeast) {
  const FakePool fake;
  const PlannedArena* large = nullptr;
  {
    const Loan small(*fake.pool, 4_KiB);
    large = Loan(*fake.pool, 32_KiB).get();
  }
  EXPECT_EQ(Loan(*fake.pool, 64_KiB).get(), large);
}

TEST(ArenaPoolTest, ATensorThatStaysSendsTheNextPassElsewhere) {
  const FakePool fake;
  PlannedArena& blocked = fake.pool->Borrow(8_KiB);
  std::byte* const squatter = Occupy(blocked, 4_KiB, 64);
  fake.pool->Return(blocked);

  PlannedArena& other = fake.pool->Borrow(8_KiB);
  EXPECT_NE(&other, &blocked);
  fake.pool->Return(other);
  EXPECT_EQ(Loan(*fake.pool, 4_KiB)->arena().mapped(), 8_KiB);

  fake.pool->Find(squatter)->Free(squatter);
  EXPECT_EQ(Loan(*fake.pool, 8_KiB).get(), &blocked);
}

TEST(ArenaPoolTest, APassThatCanDoWithoutSomeSlotsTakesAnOccupiedArena) {
  const FakePool fake;
  PlannedArena& blocked = fake.pool->Borrow(8_KiB);
  std::byte* const squatter = Occupy(blocked, 4_KiB, 64);
  fake.pool->Return(blocked);

  PlannedArena& same = fake.pool->BorrowEvenOccupied(8_KiB);
  EXPECT_EQ(&same, &blocked);
  PlannedArena& other = fake.pool->BorrowEvenOccupied(8_KiB);
  EXPECT_NE(&other, &blocked) << "it is taken";
  fake.pool->Return(same);
  fake.pool->Return(other);

  PlannedArena& free = fake.pool->BorrowEvenOccupied(8_KiB);
  EXPECT_EQ(&free, &other) << "rather one in which nothing is in the way";
  fake.pool->Return(free);
  fake.pool->Find(squatter)->Free(squatter);
}

TEST(ArenaPoolTest, APlanBelowASquatterRunsBesideIt) {
  const FakePool fake;
  PlannedArena& arena = fake.pool->Borrow(8_KiB);
  std::byte* const squatter = Occupy(arena, 4_KiB, 64);
  fake.pool->Return(arena);
  PlannedArena& below = fake.pool->Borrow(4_KiB);
  EXPECT_EQ(&below, &arena);
  below.Free(squatter);
  fake.pool->Return(below);
}

TEST(ArenaPoolTest, FindsTheArenaOfAnAddress) {
  const FakePool fake;
  const Loan a(*fake.pool, 4_KiB);
  const Loan b(*fake.pool, 4_KiB);
  EXPECT_EQ(fake.pool->Find(a->arena().base()), a.get());
  EXPECT_EQ(fake.pool->Find(b->arena().base() + 1_MiB - 1), b.get());
  EXPECT_EQ(fake.pool->Find(nullptr), nullptr);
  EXPECT_EQ(fake.pool->Find(&a), nullptr);
}

TEST(ArenaPoolTest, ATrimLeavesLiveSlotsAndBusyArenas) {
  const FakePool fake;
  PlannedArena& squatted = fake.pool->Borrow(32_KiB);
  PlannedArena& busy = fake.pool->Borrow(16_KiB);
  PlannedArena& idle = fake.pool->Borrow(16_KiB);
  std::byte* const squatter = Occupy(squatted, 4_KiB, 64);
  std::memset(squatter, 7, 64);
  fake.pool->Return(squatted);
  fake.pool->Return(idle);
  EXPECT_EQ(fake.pool->Stats().live_bytes, 64);

  EXPECT_EQ(fake.pool->Trim(), 24_KiB + 16_KiB);
  EXPECT_EQ(squatted.arena().mapped(), 8_KiB);
  EXPECT_EQ(busy.arena().mapped(), 16_KiB);
  EXPECT_EQ(idle.arena().mapped(), 0);
  EXPECT_TRUE(AllBytesAre(squatter, 64, std::byte{7}));
  EXPECT_EQ(fake.pool->Stats().arena_bytes, 24_KiB);
  EXPECT_EQ(fake.pool->Stats().arena_peak_bytes, 64_KiB);

  squatted.Free(squatter);
  fake.pool->Return(busy);
  EXPECT_EQ(fake.pool->Trim(), 24_KiB);
  EXPECT_EQ(fake.pool->Trim(), 0);
  EXPECT_EQ(fake.pool->Stats().live_bytes, 0);
  EXPECT_EQ(fake.backend->mapped(), 0);
  EXPECT_THAT(fake.backend->misuse(), ::testing::IsEmpty());
}

// Field fault 18, at the root.
TEST(ArenaPoolTest, ATrimLeavesPinnedArenas) {
  const FakePool fake;
  PlannedArena& arena = fake.pool->Borrow(16_KiB);
  arena.arena().Pin();
  fake.pool->Return(arena);
  EXPECT_EQ(fake.pool->Trim(), 0);
  arena.arena().Unpin();
  EXPECT_EQ(fake.pool->Trim(), 16_KiB);
}

TEST(ArenaPoolTest, TakesTheMemoryOfIdleArenasBeforeItFails) {
  int pressed = 0;
  const FakePool fake({.capacity = 64_KiB}, 1_MiB, [&] { ++pressed; });
  // Field fault 8: 40 KiB are idle, and blocked by a squatter at their beginning.
  PlannedArena& blocked = fake.pool->Borrow(40_KiB);
  std::byte* const squatter = Occupy(blocked, 0, 64);
  fake.pool->Return(blocked);
  PlannedArena& other = fake.pool->Borrow(60_KiB);
  EXPECT_EQ(other.arena().mapped(), 60_KiB);
  EXPECT_EQ(blocked.arena().mapped(), 4_KiB);
  EXPECT_EQ(pressed, 1);
  EXPECT_EQ(fake.pool->Stats().arena_peak_bytes, 64_KiB);
  fake.pool->Return(other);
  blocked.Free(squatter);
}

TEST(ArenaPoolTest, UpstreamsCachesAreAskedForWhenMemoryIsShort) {
  FakeBackend* backend = nullptr;
  int pressed = 0;
  const FakePool fake({.capacity = 16_KiB}, 1_MiB, [&] {
    ++pressed;
    backend->set_capacity(64_KiB);
  });
  backend = fake.backend;
  fake.pool->Return(fake.pool->Borrow(16_KiB));
  EXPECT_EQ(pressed, 0);
  fake.pool->Return(fake.pool->Borrow(32_KiB));
  EXPECT_EQ(pressed, 1);
}

TEST(ArenaPoolTest, AfterAFailureTheNextRequestIsServed) {
  int pressed = 0;
  const FakePool fake({.capacity = 64_KiB}, 1_MiB, [&] { ++pressed; });
  PlannedArena& first = fake.pool->Borrow(32_KiB);
  fake.pool->Return(first);
  EXPECT_THROW((void)fake.pool->Borrow(128_KiB), OutOfMemory);
  EXPECT_EQ(pressed, 1);
  EXPECT_EQ(Loan(*fake.pool, 16_KiB).get(), &first) << "nobody holds it";
  EXPECT_LE(fake.backend->mapped(), 64_KiB);
}

TEST(ArenaPoolTest, WhatNoMemoryWouldHelpIsRefusedWithoutATrim) {
  int pressed = 0;
  const FakePool fake({}, 1_MiB, [&] { ++pressed; });
  PlannedArena& a = fake.pool->Borrow(32_KiB);
  PlannedArena& b = fake.pool->Borrow(32_KiB);
  fake.pool->Return(a);
  fake.pool->Return(b);
  EXPECT_THROW((void)fake.pool->Borrow(1_MiB + 1_B), OutOfMemory);
  EXPECT_EQ(pressed, 0);
  EXPECT_EQ(fake.backend->mapped(), 64_KiB);
}

TEST(ArenaPoolTest, AnErrorUnderPressureGivesTheArenaBack) {
  bool fail = true;
  const FakePool fake({.capacity = 16_KiB}, 1_MiB, [&] {
    if (fail) throw Error("upstream failed");
  });
  EXPECT_THROW((void)fake.pool->Borrow(32_KiB), Error);
  fail = false;
  const Loan arena(*fake.pool, 16_KiB);
  EXPECT_EQ(fake.pool->Stats().arena_bytes, 16_KiB);
}

TEST(ArenaPoolTest, RunsOutOfArenasWithAReason) {
  const FakePool fake({}, 4_KiB);
  std::vector<PlannedArena*> arenas;
  try {
    for (int i = 0; i < 1000; ++i) arenas.push_back(&fake.pool->Borrow(1));
    ADD_FAILURE() << "no limit";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("64 arenas of cpu"));
  }
  EXPECT_EQ(arenas.size(), 64U);
  fake.pool->Return(*arenas.back());
  EXPECT_EQ(&fake.pool->Borrow(1), arenas.back());
  for (PlannedArena* arena : arenas) fake.pool->Return(*arena);
}

// Field fault 9: each Reserve and Map fails once. The request may fail, and then works when it is made again;
// nothing that lives is touched.
TEST(ArenaPoolTest, SurvivesEverySingleBackendFailure) {
  int thrown = 0;
  for (int n = 1; n <= 9; ++n) {
    SCOPED_TRACE("call " + std::to_string(n) + " fails");
    const FakePool fake({.capacity = 256_KiB});
    fake.backend->FailNthCall(n);
    const auto borrow = [&](Bytes height) -> PlannedArena& {
      try {
        return fake.pool->Borrow(height);
      } catch (const OutOfMemory&) {
        ++thrown;
        return fake.pool->Borrow(height);
      }
    };
    PlannedArena& a = borrow(8_KiB);
    std::byte* const squatter = Occupy(a, 0, 64);
    std::memset(squatter, 7, 64);
    fake.pool->Return(a);
    PlannedArena& b = borrow(32_KiB);
    PlannedArena& c = borrow(64_KiB);
    EXPECT_GE(b.arena().mapped(), 32_KiB);
    EXPECT_GE(c.arena().mapped(), 64_KiB);
    fake.pool->Return(b);
    fake.pool->Return(c);
    PlannedArena& d = borrow(128_KiB);
    EXPECT_TRUE(AllBytesAre(squatter, 64, std::byte{7}));
    fake.pool->Return(d);
    a.Free(squatter);
    EXPECT_EQ(fake.pool->Stats().arena_bytes, fake.backend->mapped());
    fake.pool->Trim();
    EXPECT_EQ(fake.backend->mapped(), 0);
    EXPECT_THAT(fake.backend->misuse(), ::testing::IsEmpty());
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(thrown, 3) << "three reservations; what Map refuses is asked for once more";
}

// Field fault 13: tensors alive in statics, in thread storage and in other threads when the process ends.
struct FreedAtExit {
  ArenaPool* pool = nullptr;
  std::byte* slot = nullptr;
  ~FreedAtExit() {
    if (pool != nullptr) pool->Find(slot)->Free(slot);
  }
};

[[noreturn]] void ExitWithLiveSlots() {
  static FreedAtExit in_a_static;
  static thread_local FreedAtExit in_this_thread;
  const FakePool fake;
  PlannedArena& arena = fake.pool->Borrow(4_KiB);
  in_a_static.pool = in_this_thread.pool = fake.pool;
  in_a_static.slot = Occupy(arena, 0, 64);
  in_this_thread.slot = Occupy(arena, 64, 64);
  std::byte* const elsewhere = Occupy(arena, 128, 64);
  fake.pool->Return(arena);
  std::thread([&] {
    static thread_local FreedAtExit in_that_thread;
    in_that_thread.pool = fake.pool;
    in_that_thread.slot = elsewhere;
  }).join();
  std::exit(0);
}

TEST(ArenaPoolDeathTest, SlotsMayBeFreedWhileTheProcessEnds) {
  EXPECT_EXIT(ExitWithLiveSlots(), ::testing::ExitedWithCode(0), "^$");
}

}  // namespace
}  // namespace livepool
