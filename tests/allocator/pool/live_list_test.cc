#include "livepool/pool/live_list.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace livepool {
namespace {

class LiveListTest : public testing::Test {
 protected:
  std::byte* At(Bytes offset) { return memory_.data() + offset; }
  bool Insert(Slot& slot, Bytes offset, Bytes size) {
    slot.begin = At(offset);
    slot.size = size;
    const bool inserted = list_.Insert(slot);
    if (inserted) slot.live = 1;
    return inserted;
  }
  void Remove(Slot& slot) {
    slot.live = 0;
    list_.Remove(slot);
  }

  std::array<std::byte, 4096> memory_{};
  LiveList list_;
};

TEST_F(LiveListTest, IsEmptyAtFirst) {
  EXPECT_TRUE(list_.empty());
  EXPECT_EQ(list_.End(), nullptr);
  EXPECT_EQ(list_.LiveBytes(), 0);
  EXPECT_EQ(list_.BytesBelow(At(4096)), 0);
  EXPECT_TRUE(list_.CheckInvariants());
}

//   0    64   128   192
//   |-c--|--a--|--b--|      Slots that touch share no byte.
TEST_F(LiveListTest, LinksNeighboursInAnyOrder) {
  Slot a, b, c;
  EXPECT_TRUE(Insert(a, 64, 64));
  EXPECT_TRUE(Insert(b, 128, 64));
  EXPECT_TRUE(Insert(c, 0, 64));
  EXPECT_TRUE(list_.CheckInvariants());
  EXPECT_EQ(list_.End(), At(192));
  EXPECT_EQ(list_.LiveBytes(), 192);
  Remove(a);
  EXPECT_TRUE(list_.CheckInvariants());
  EXPECT_TRUE(Insert(a, 64, 64));
  Remove(b);
  Remove(c);
  Remove(a);
  EXPECT_TRUE(list_.empty());
}

//        128      256
//         |---a----|
//    |--------|             across its begin    |---|        inside
//              |------|     across its end    |----------|   around
//         |--|              at its begin, shorter
TEST_F(LiveListTest, RefusesEveryOverlapAndChangesNothing) {
  Slot a;
  ASSERT_TRUE(Insert(a, 128, 128));
  for (const auto& [offset, size] : std::vector<std::pair<Bytes, Bytes>>{
           {64, 65}, {255, 64}, {128, 64}, {128, 128}, {128, 256}, {192, 32}, {64, 512}, {192, 64}}) {
    Slot b;
    EXPECT_FALSE(Insert(b, offset, size)) << offset << ", " << size;
    EXPECT_TRUE(list_.CheckInvariants());
    EXPECT_EQ(list_.LiveBytes(), 128);
    EXPECT_EQ(b.next, nullptr);
  }
}

TEST_F(LiveListTest, AsksForLiveBytesBelowAnAddress) {
  Slot a, b;
  ASSERT_TRUE(Insert(a, 128, 128));
  ASSERT_TRUE(Insert(b, 512, 64));
  EXPECT_EQ(list_.BytesBelow(At(0)), 0);
  EXPECT_EQ(list_.BytesBelow(At(128)), 0);
  EXPECT_EQ(list_.BytesBelow(At(129)), 128);
  EXPECT_EQ(list_.BytesBelow(At(512)), 128);
  EXPECT_EQ(list_.BytesBelow(At(4096)), 128 + 64);
}

TEST_F(LiveListTest, RemembersTheLeftNeighbour) {
  Slot a, b, c;
  ASSERT_TRUE(Insert(a, 0, 64));
  ASSERT_TRUE(Insert(c, 512, 64));
  EXPECT_EQ(a.left_hint, nullptr);
  EXPECT_EQ(c.left_hint, &a);
  ASSERT_TRUE(Insert(b, 64, 64));  // c's hint is now further left than its neighbour
  Remove(c);
  ASSERT_TRUE(Insert(c, 512, 64));
  EXPECT_EQ(c.prev, &b);
  EXPECT_EQ(c.left_hint, &b);
}

TEST_F(LiveListTest, IgnoresAHintThatIsNotLiveOrLiesToTheRight) {
  Slot a, b, c;
  ASSERT_TRUE(Insert(a, 0, 64));
  ASSERT_TRUE(Insert(b, 64, 64));
  ASSERT_TRUE(Insert(c, 128, 64));
  Remove(c);
  Remove(b);  // c's hint
  ASSERT_TRUE(Insert(c, 128, 64));
  EXPECT_EQ(c.prev, &a);
  Remove(a);
  Remove(c);
  ASSERT_TRUE(Insert(b, 1024, 64));
  c.left_hint = &b;
  ASSERT_TRUE(Insert(c, 128, 64));
  EXPECT_EQ(b.prev, &c);
  EXPECT_TRUE(list_.CheckInvariants());
}

TEST_F(LiveListTest, ItsCheckSeesBrokenLists) {
  Slot a, b;
  ASSERT_TRUE(Insert(a, 0, 64));
  ASSERT_TRUE(Insert(b, 64, 64));
  b.live = 0;
  EXPECT_FALSE(list_.CheckInvariants()) << "a linked slot that is not live";
  b.live = 1;
  a.size = 65;
  EXPECT_FALSE(list_.CheckInvariants()) << "an overlap";
  a.size = 64;
  b.prev = nullptr;
  EXPECT_FALSE(list_.CheckInvariants()) << "a missing link back";
  b.prev = &a;
  EXPECT_TRUE(list_.CheckInvariants());
}

TEST_F(LiveListTest, EqualsAScanOfAllLiveSlots) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    LiveList list;
    std::vector<Slot> slots(40);
    for (Slot& slot : slots) {
      slot.begin = At(static_cast<Bytes>(random() % 60) * 64);
      slot.size = static_cast<Bytes>(1 + random() % 4) * 64;
    }
    for (int i = 0; i < 2000; ++i) {
      Slot& slot = slots[random() % slots.size()];
      if (slot.live > 0) {
        slot.live = 0;
        list.Remove(slot);
        continue;
      }
      bool free = true;
      for (const Slot& other : slots) free &= other.live == 0 || other.end() <= slot.begin || slot.end() <= other.begin;
      ASSERT_EQ(list.Insert(slot), free);
      if (free) slot.live = 1;
      ASSERT_TRUE(list.CheckInvariants());
    }
  }
}

}  // namespace
}  // namespace livepool
