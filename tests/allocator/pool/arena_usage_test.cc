// What statistics and pictures say of an arena, and who may look at it when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "allocator/pool/test_tables.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

using ::testing::ElementsAre;
using testing::FakePool;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::OneOpEach;
using ::testing::ThrowsMessage;

class ArenaUsageTest : public ::testing::Test {
 protected:
  ~ArenaUsageTest() override {
    EXPECT_TRUE(arena_.CheckInvariants());
    arena_.Release();
  }
  std::byte* Serve(std::size_t entry, bool join = false) { return arena_.Serve(table_.entries[entry], join); }
  void Free(std::byte* address) { arena_.Free(address); }

  FakePool fake_;
  PlannedArena& arena_ = fake_.pool->Borrow(1_KiB);
  const BoundTable& table_ = *arena_.Bind(OneOpEach({{0, 128}, {128, 64}, {512, 64}}));
};

TEST_F(ArenaUsageTest, CountsWhatIsLiveAndTheMostOfIt) {
  std::byte* const a = Serve(0);
  std::byte* const b = Serve(1);
  Free(b);
  EXPECT_EQ(arena_.Usage(),
            (ArenaUsage{.live_bytes = 128, .peak_bytes = 192, .served_bytes = 192, .live = 1, .peak = 2, .served = 2}));
  Free(a);
  Free(Serve(2));
  EXPECT_EQ(arena_.Usage(),
            (ArenaUsage{.live_bytes = 0, .peak_bytes = 192, .served_bytes = 256, .live = 0, .peak = 2, .served = 3}));
}

TEST_F(ArenaUsageTest, TheNextPassHasAPeakOfItsOwn) {
  std::byte* const kept = Serve(1);
  Free(Serve(0));
  EXPECT_EQ(arena_.Usage().peak_bytes, 192);
  arena_.Release();
  EXPECT_EQ(arena_.Usage().peak_bytes, 64) << "while no pass runs, what is live";
  ASSERT_TRUE(arena_.TryHold());
  EXPECT_EQ(arena_.Usage().peak_bytes, 64);
  Free(kept);
}

TEST_F(ArenaUsageTest, AnInPlacePairIsTwoAllocationsOnTheSameBytes) {
  std::byte* const slot = Serve(0);
  ASSERT_EQ(Serve(0, /*join=*/true), slot);
  EXPECT_EQ(arena_.Usage(),
            (ArenaUsage{.live_bytes = 128, .peak_bytes = 128, .served_bytes = 128, .live = 2, .peak = 2, .served = 2}));
  Free(slot);
  EXPECT_EQ(arena_.Usage().live_bytes, 128);
  Free(slot);
  EXPECT_EQ(arena_.Usage().live_bytes, 0);
}

TEST_F(ArenaUsageTest, ARefusedRequestIsNotCounted) {
  std::byte* const slot = Serve(0);
  EXPECT_EQ(Serve(0), nullptr);
  EXPECT_EQ(arena_.Usage().served, 1);
  Free(slot);
}

TEST_F(ArenaUsageTest, AFreeAfterThePassCountsAtOnce) {
  std::byte* const late = Serve(0);
  arena_.Release();
  std::thread([&] { Free(late); }).join();
  EXPECT_EQ(fake_.pool->Stats().live_bytes, 0);
  ASSERT_TRUE(arena_.TryHold());
}

TEST_F(ArenaUsageTest, AFreeOfAnotherThreadWithinThePassCountsWhenThePassLooks) {
  std::byte* const slot = Serve(0);
  std::thread([&] { Free(slot); }).join();
  std::thread([&] { EXPECT_EQ(fake_.pool->Stats().live_bytes, 128) << "the pass has not seen it yet"; }).join();
  EXPECT_EQ(fake_.pool->Stats().live_bytes, 0);
}

TEST_F(ArenaUsageTest, APictureListsLiveSlotsByAddress) {
  std::byte* const c = Serve(2);
  std::byte* const b = Serve(1);
  EXPECT_THAT(arena_.Picture().slots, ElementsAre(SlotRange{128, 64}, SlotRange{512, 64})) << "by the holder itself";
  arena_.Release();
  const ArenaPicture picture = arena_.Picture();
  EXPECT_THAT(picture.slots, ElementsAre(SlotRange{128, 64}, SlotRange{512, 64}));
  EXPECT_EQ(picture.base, arena_.arena().base());
  EXPECT_EQ(picture.mapped, arena_.arena().mapped());
  EXPECT_FALSE(picture.serving);
  Free(b);
  EXPECT_THAT(arena_.Picture().slots, ElementsAre(SlotRange{512, 64}));
  ASSERT_TRUE(arena_.TryHold());
  Free(c);
}

TEST_F(ArenaUsageTest, APictureOfAnotherThreadsPassHasTheSumOnly) {
  std::byte* const slot = Serve(0);
  std::thread([&] {
    const ArenaPicture picture = arena_.Picture();
    EXPECT_TRUE(picture.serving);
    EXPECT_THAT(picture.slots, IsEmpty());
    EXPECT_EQ(picture.live_bytes, 128);
  }).join();
  Free(slot);
}

// Statistics may be read all the time: that neither makes a pass take a second arena nor shows it wrong sums.
TEST(ArenaVisitTest, ReadersNeverCostAPassItsArena) {
  const FakePool fake;
  PlannedArena& arena = fake.pool->Borrow(1_KiB);
  const BoundTable& table = *arena.Bind(OneOpEach({{0, 64}, {64, 64}}));
  fake.pool->Return(arena);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done.load()) {
      const PoolStats stats = fake.pool->Stats();
      EXPECT_GE(stats.live_bytes, 0);
      EXPECT_LE(stats.live_bytes, 128);
      for (const ArenaPicture& picture : fake.pool->Pictures()) {
        EXPECT_LE(picture.slots.size(), picture.serving ? 0U : 1U);
      }
    }
  });
  for (int i = 0; i < 2000; ++i) {
    PlannedArena& held = fake.pool->Borrow(1_KiB);
    ASSERT_EQ(&held, &arena);
    std::byte* const late = held.Serve(table.entries[0], false);
    std::byte* const soon = held.Serve(table.entries[1], false);
    ASSERT_NE(late, nullptr);
    ASSERT_NE(soon, nullptr);
    held.Free(soon);
    fake.pool->Return(held);
    held.Free(late);
  }
  done.store(true);
  reader.join();
  EXPECT_EQ(fake.pool->Stats().live_bytes, 0);
}

TEST(ArenaTrimTest, AskedForByTheUserItSaysWhyItCannot) {
  const FakePool fake;
  PlannedArena& busy = fake.pool->Borrow(8_KiB);
  PlannedArena& idle = fake.pool->Borrow(8_KiB);
  fake.pool->Return(idle);
  const auto trim = [&] { fake.pool->CheckTrim(); };
  EXPECT_THAT(trim, ThrowsMessage<ArenaInUse>(HasSubstr("a pass runs")));
  busy.arena().Pin();
  fake.pool->Return(busy);
  EXPECT_THAT(trim, ThrowsMessage<ArenaInUse>(HasSubstr("a CUDA graph lies over one")));
  EXPECT_TRUE(busy.Picture().pinned);
  busy.arena().Unpin();
  EXPECT_NO_THROW(fake.pool->CheckTrim());
}

TEST(ArenaPoolRefusalTest, IsCounted) {
  const FakePool fake({.capacity = 8_KiB});
  EXPECT_THROW((void)fake.pool->Borrow(64_KiB), OutOfMemory);
  EXPECT_EQ(fake.pool->Stats().refused, 1);
}

}  // namespace
}  // namespace livepool
