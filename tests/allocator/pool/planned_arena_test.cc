#include "livepool/pool/planned_arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "allocator/pool/test_tables.h"

namespace livepool {
namespace {

using testing::AllBytesAre;
using testing::OneOpEach;
using testing::TableOf;
using Fills = std::vector<FakeBackend::FillCall>;

void OnAnotherThread(const std::function<void()>& work) { std::thread(work).join(); }

// Held by the test's thread, with 64 KiB mapped.
class PlannedArenaTest : public ::testing::Test {
 protected:
  PlannedArenaTest() {
    arena_.arena().Grow(64_KiB);
    EXPECT_TRUE(arena_.TryHold());
  }
  ~PlannedArenaTest() override {
    EXPECT_TRUE(arena_.CheckInvariants());
    EXPECT_THAT(backend_.misuse(), ::testing::IsEmpty());
  }
  std::byte* Serve(const BoundTable& table, std::size_t entry, bool join = false) {
    return arena_.Serve(table.entries[entry], join);
  }
  std::byte* At(Bytes offset) { return arena_.arena().base() + offset; }
  // What a holder does between two passes.
  void HoldAgain() {
    arena_.Release();
    ASSERT_TRUE(arena_.TryHold());
  }

  FakeBackend backend_;
  PlannedArena arena_{backend_, 1_MiB};
};

TEST_F(PlannedArenaTest, ServesARangeAndTakesItBackByAddress) {
  const BoundTable& table = *arena_.Bind(OneOpEach({{0, 128}, {128, 64}}));
  EXPECT_EQ(Serve(table, 0), At(0));
  EXPECT_EQ(Serve(table, 1), At(128));
  EXPECT_EQ(arena_.LiveBytes(), 192);
  EXPECT_EQ(Serve(table, 0), nullptr) << "in use";
  arena_.Free(At(0));
  EXPECT_EQ(arena_.LiveBytes(), 64);
  EXPECT_EQ(Serve(table, 0), At(0));
  arena_.Free(At(128));
  arena_.Free(At(0));
  EXPECT_EQ(arena_.LiveBytes(), 0);
}

//      0   64  128  192
//   A  |---0---|-1--|       Two plans on one arena.
//   B  |-0-|---1----|
TEST_F(PlannedArenaTest, RefusesOverlapAcrossPlans) {
  const BoundTable& a = *arena_.Bind(OneOpEach({{0, 128}, {128, 64}}));
  const BoundTable& b = *arena_.Bind(OneOpEach({{0, 64}, {64, 128}}));
  ASSERT_NE(Serve(a, 0), nullptr);
  EXPECT_EQ(Serve(b, 0), nullptr);
  EXPECT_EQ(Serve(b, 1), nullptr);
  arena_.Free(At(0));
  EXPECT_EQ(Serve(b, 0), At(0));
  EXPECT_EQ(Serve(a, 0), nullptr);
  EXPECT_EQ(Serve(a, 1), At(128));
  EXPECT_EQ(Serve(b, 1), nullptr);
  arena_.Free(At(0));
  arena_.Free(At(128));
  EXPECT_EQ(Serve(b, 1), At(64));
  arena_.Free(At(64));
}

// The plan may be wrong about time (row 1 of the field's faults): two of its own ranges overlap.
TEST_F(PlannedArenaTest, RefusesOverlapInsideOnePlan) {
  const BoundTable& table = *arena_.Bind(OneOpEach({{0, 128}, {64, 128}}));
  ASSERT_NE(Serve(table, 0), nullptr);
  EXPECT_EQ(Serve(table, 1), nullptr);
  arena_.Free(At(0));
  EXPECT_EQ(Serve(table, 1), At(64));
  arena_.Free(At(64));
}

TEST_F(PlannedArenaTest, TheHolderOfAnEqualAddressIsFound) {
  const BoundTable& a = *arena_.Bind(OneOpEach({{0, 128}}));
  const BoundTable& b = *arena_.Bind(OneOpEach({{0, 256}}));
  EXPECT_EQ(a.entries[0].cell, b.entries[0].cell);
  ASSERT_NE(Serve(a, 0), nullptr);
  arena_.Free(At(0));
  ASSERT_NE(Serve(b, 0), nullptr);
  EXPECT_EQ(arena_.LiveBytes(), 256);
  arena_.Free(At(0));
  EXPECT_EQ(arena_.LiveBytes(), 0);
}

TEST_F(PlannedArenaTest, AJoinNeedsExactlyOneOwner) {
  const BoundTable& table = *arena_.Bind(OneOpEach({{0, 64}}));
  EXPECT_EQ(Serve(table, 0, /*join=*/true), nullptr) << "nobody is there";
  ASSERT_NE(Serve(table, 0), nullptr);
  EXPECT_EQ(Serve(table, 0, /*join=*/true), At(0));
  EXPECT_EQ(Serve(table, 0, /*join=*/true), nullptr) << "two are there";
  arena_.Free(At(0));
  EXPECT_EQ(Serve(table, 0), nullptr) << "the other one lives on";
  EXPECT_EQ(Serve(table, 0, /*join=*/true), At(0)) << "the chain's next link";
  arena_.Free(At(0));
  arena_.Free(At(0));
  EXPECT_EQ(arena_.LiveBytes(), 0);
}

TEST_F(PlannedArenaTest, AJoinSeesFreesOfOtherThreads) {
  const BoundTable& table = *arena_.Bind(OneOpEach({{0, 64}}));
  ASSERT_NE(Serve(table, 0), nullptr);
  ASSERT_NE(Serve(table, 0, /*join=*/true), nullptr);
  OnAnotherThread([&] { arena_.Free(At(0)); });
  EXPECT_EQ(Serve(table, 0, /*join=*/true), At(0));
  arena_.Free(At(0));
  arena_.Free(At(0));
}

TEST_F(PlannedArenaTest, FreesOfOtherThreadsCountWhenTheBytesAreNeeded) {
  const BoundTable& a = *arena_.Bind(OneOpEach({{0, 64}, {64, 64}, {128, 64}}));
  const BoundTable& b = *arena_.Bind(OneOpEach({{0, 192}}));
  for (std::size_t i = 0; i < 3; ++i) ASSERT_NE(Serve(a, i), nullptr);
  OnAnotherThread([&] {
    arena_.Free(At(64));
    arena_.Free(At(0));
  });
  EXPECT_EQ(arena_.LiveBytes(), 192) << "conservative: the holder has not looked yet";
  EXPECT_EQ(Serve(b, 0), nullptr) << "one is live";
  EXPECT_EQ(arena_.LiveBytes(), 64) << "it has looked now";
  OnAnotherThread([&] { arena_.Free(At(128)); });
  EXPECT_EQ(Serve(b, 0), At(0));
  arena_.Free(At(0));
}

TEST_F(PlannedArenaTest, BothOwnersOfASlotMayBeFreedElsewhere) {
  const BoundTable& table = *arena_.Bind(OneOpEach({{0, 64}}));
  for (int round = 0; round < 3; ++round) {
    ASSERT_NE(Serve(table, 0), nullptr);
    ASSERT_NE(Serve(table, 0, /*join=*/true), nullptr);
    OnAnotherThread([&] {
      arena_.Free(At(0));
      arena_.Free(At(0));
    });
  }
  ASSERT_NE(Serve(table, 0), nullptr);
  ASSERT_NE(Serve(table, 0, /*join=*/true), nullptr);
  arena_.Free(At(0));
  OnAnotherThread([&] { arena_.Free(At(0)); });
  HoldAgain();
  EXPECT_EQ(arena_.LiveBytes(), 0);
}

TEST_F(PlannedArenaTest, WithoutAHolderFreesWaitForTheNextOne) {
  const BoundTable& table = *arena_.Bind(OneOpEach({{0, 64}}));
  ASSERT_NE(Serve(table, 0), nullptr);
  arena_.Release();
  EXPECT_EQ(arena_.LiveBytes(), 64);
  arena_.Free(At(0));  // by the thread that was the holder
  ASSERT_TRUE(arena_.TryHold());
  EXPECT_EQ(arena_.LiveBytes(), 0);
}

TEST_F(PlannedArenaTest, AReleaseCountsTheFreesOfOtherThreads) {
  const BoundTable& table = *arena_.Bind(OneOpEach({{0, 64}, {64, 64}}));
  ASSERT_NE(Serve(table, 0), nullptr);
  ASSERT_NE(Serve(table, 1), nullptr);
  OnAnotherThread([&] { arena_.Free(At(0)); });
  HoldAgain();
  EXPECT_EQ(arena_.LiveBytes(), 64);
  arena_.Free(At(64));
}

TEST_F(PlannedArenaTest, HasOneHolder) {
  EXPECT_FALSE(arena_.TryHold());
  OnAnotherThread([&] { EXPECT_FALSE(arena_.TryHold()); });
  arena_.Release();
  OnAnotherThread([&] {
    EXPECT_TRUE(arena_.TryHold());
    arena_.Release();
  });
  EXPECT_TRUE(arena_.TryHold());
}

TEST_F(PlannedArenaTest, FreesOfUnknownAddressesAreIgnored) {
  arena_.Free(nullptr);
  arena_.Free(At(0));
  (void)arena_.Bind(OneOpEach({{0, 64}}));
  arena_.Free(At(0));
  arena_.Free(At(64));
  EXPECT_EQ(arena_.LiveBytes(), 0);
}

TEST_F(PlannedArenaTest, TellsHowManyBytesAreLiveBelow) {
  const BoundTable& table = *arena_.Bind(OneOpEach({{128, 64}}));
  EXPECT_EQ(arena_.LiveBelow(64_KiB), 0);
  ASSERT_NE(Serve(table, 0), nullptr);
  EXPECT_EQ(arena_.LiveBelow(128), 0);
  EXPECT_EQ(arena_.LiveBelow(129), 64);
  arena_.Free(At(128));
}

TEST_F(PlannedArenaTest, TrimsAboveTheLastLiveSlot) {
  const BoundTable& table = *arena_.Bind(OneOpEach({{0, 64}, {8_KiB, 64}, {32_KiB, 64}}));
  for (std::size_t i = 0; i < 3; ++i) ASSERT_NE(Serve(table, i), nullptr);
  std::memset(At(8_KiB), 7, 64);
  arena_.Free(At(32_KiB));
  EXPECT_EQ(arena_.TrimHeld(), 64_KiB - 12_KiB);
  EXPECT_TRUE(AllBytesAre(At(8_KiB), 64, std::byte{7}));
  EXPECT_EQ(arena_.TrimHeld(), 0);
  OnAnotherThread([&] { arena_.Free(At(8_KiB)); });
  HoldAgain();
  EXPECT_EQ(arena_.TrimHeld(), 8_KiB);
  arena_.Free(At(0));
  EXPECT_EQ(arena_.TrimHeld(), 4_KiB);
  EXPECT_EQ(arena_.arena().mapped(), 0);
}

TEST_F(PlannedArenaTest, PoisonsASlotWhenItsLastOwnerGoes) {
  int stream = 0;
  arena_.SetFill(Fill::kNan, &stream);
  const BoundTable& table = *arena_.Bind(OneOpEach({{0, 128}}));
  ASSERT_NE(Serve(table, 0), nullptr);
  ASSERT_NE(Serve(table, 0, /*join=*/true), nullptr);
  std::memset(At(0), 7, 128);
  arena_.Free(At(0));
  EXPECT_TRUE(AllBytesAre(At(0), 128, std::byte{7}));
  arena_.Free(At(0));
  EXPECT_TRUE(AllBytesAre(At(0), 128, std::byte{0xFF}));
  EXPECT_EQ(backend_.fills(), (Fills{{At(0), 128, std::byte{0xFF}, &stream}}));
}

TEST_F(PlannedArenaTest, PoisonsWhatOtherThreadsFreeBeforeTheNextOwnerComes) {
  arena_.SetFill(Fill::kNan, nullptr);
  const BoundTable& table = *arena_.Bind(OneOpEach({{0, 128}}));
  ASSERT_NE(Serve(table, 0), nullptr);
  std::memset(At(0), 7, 128);
  OnAnotherThread([&] { arena_.Free(At(0)); });
  EXPECT_TRUE(AllBytesAre(At(0), 128, std::byte{7}));
  ASSERT_NE(Serve(table, 0), nullptr);
  EXPECT_TRUE(AllBytesAre(At(0), 128, std::byte{0xFF}));
  arena_.SetFill(Fill::kNone, nullptr);
  arena_.Free(At(0));
  EXPECT_EQ(backend_.fills().size(), 1U);
}

TEST_F(PlannedArenaTest, ZeroesASlotOnceBeforeItsFirstUse) {
  int stream = 0;
  arena_.SetFill(Fill::kZero, &stream);
  const BoundTable& table = *arena_.Bind(OneOpEach({{0, 128}}));
  ASSERT_NE(Serve(table, 0), nullptr);
  EXPECT_TRUE(AllBytesAre(At(0), 128, std::byte{0}));
  std::memset(At(0), 7, 128);
  ASSERT_NE(Serve(table, 0, /*join=*/true), nullptr);
  arena_.Free(At(0));
  arena_.Free(At(0));
  ASSERT_NE(Serve(table, 0), nullptr);
  EXPECT_TRUE(AllBytesAre(At(0), 128, std::byte{7}));
  EXPECT_EQ(backend_.fills(), (Fills{{At(0), 128, std::byte{0}, &stream}}));
  arena_.Free(At(0));
}

TEST_F(PlannedArenaTest, ZeroesAgainWhatATrimHasTakenAway) {
  arena_.SetFill(Fill::kZero, nullptr);
  const BoundTable& table = *arena_.Bind(OneOpEach({{0, 128}}));
  ASSERT_NE(Serve(table, 0), nullptr);
  arena_.Free(At(0));
  ASSERT_GT(arena_.TrimHeld(), 0);
  arena_.arena().Grow(64_KiB);
  ASSERT_NE(Serve(table, 0), nullptr);
  EXPECT_TRUE(AllBytesAre(At(0), 128, std::byte{0}));
  arena_.Free(At(0));
}

TEST_F(PlannedArenaTest, AnUnboundTableStaysUntilItsLastSlotIsFree) {
  BoundTable* const old = arena_.Bind(OneOpEach({{0, 64}, {64, 64}}));
  ASSERT_NE(Serve(*old, 0), nullptr);
  ASSERT_NE(Serve(*old, 1), nullptr);
  arena_.Unbind(old);
  HoldAgain();
  const BoundTable& table = *arena_.Bind(OneOpEach({{0, 128}}));
  EXPECT_EQ(Serve(table, 0), nullptr);
  arena_.Free(At(0));
  HoldAgain();
  EXPECT_EQ(Serve(table, 0), nullptr);
  OnAnotherThread([&] { arena_.Free(At(64)); });
  HoldAgain();  // applies the free and purges the table
  EXPECT_EQ(Serve(table, 0), At(0));
  arena_.Free(At(0));
}

// The sanitizer sees a use of what was purged.
TEST_F(PlannedArenaTest, NothingPointsIntoAPurgedTable) {
  BoundTable* const old = arena_.Bind(OneOpEach({{0, 64}, {256, 64}}));
  const BoundTable& table = *arena_.Bind(OneOpEach({{64, 64}, {256, 64}}));
  ASSERT_NE(Serve(*old, 0), nullptr);
  ASSERT_NE(Serve(table, 0), nullptr);  // its left hint is a slot of `old`
  arena_.Free(At(0));
  arena_.Free(At(64));
  arena_.Unbind(old);
  HoldAgain();
  ASSERT_EQ(Serve(table, 0), At(64));
  arena_.Free(At(64));
  arena_.Free(At(0));  // nobody's address any more, though its cell once pointed to a slot
}

TEST_F(PlannedArenaTest, APurgeLeavesTheCellsOfOtherTablesAlone) {
  BoundTable* const old = arena_.Bind(OneOpEach({{0, 64}}));
  ASSERT_NE(Serve(*old, 0), nullptr);
  arena_.Free(At(0));
  const BoundTable& table = *arena_.Bind(OneOpEach({{0, 128}}));
  ASSERT_NE(Serve(table, 0), nullptr);
  arena_.Unbind(old);
  HoldAgain();
  arena_.Free(At(0));
  EXPECT_EQ(arena_.LiveBytes(), 0);
}

TEST_F(PlannedArenaTest, UpstreamEntriesHaveNoSlot) {
  const BoundTable& table = *arena_.Bind(TableOf({{0, 64}}, {{{.size = 64, .range = 0}, {.size = 512}}}));
  EXPECT_NE(table.entries[0].slot, nullptr);
  EXPECT_EQ(table.entries[1].slot, nullptr);
  EXPECT_EQ(table.height, 64);
}

}  // namespace
}  // namespace livepool
