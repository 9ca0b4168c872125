#include "livepool/pool/pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "allocator/pool/test_tables.h"

namespace livepool {
namespace {

using testing::FakePool;
using testing::kUpstream;
using testing::OneOpEach;
using testing::TableOf;

class PassTest : public ::testing::Test {
 protected:
  ~PassTest() override {
    fake_.pool->Return(arena_);
    EXPECT_EQ(CurrentThread().pass, nullptr);
  }
  std::byte* At(Bytes offset) { return arena_.arena().base() + offset; }

  // op 0: 128 and 64 bytes; op 1: 64 bytes, and 256 upstream; op 2: in place over op 1's.
  const SlotTable table_ =
      TableOf({{0, 128}, {128, 64}, {192, 64}}, {{{.size = 128, .range = 0}, {.size = 64, .range = 1}},
                                                 {{.size = 64, .range = 2}, {.size = 256, .range = kUpstream}},
                                                 {{.size = 64, .range = 2, .in_place = true}}});
  FakePool fake_;
  PlannedArena& arena_ = fake_.pool->Borrow(table_.height);
  const BoundTable& bound_ = *arena_.Bind(table_);
  int a_stream_ = 0;
  const StreamHandle stream_ = &a_stream_;
};

TEST_F(PassTest, ServesByOpAndPosition) {
  Pass pass(*fake_.pool, arena_, bound_, stream_, Fill::kNone);
  EXPECT_EQ(CurrentThread().pass, &pass);
  EXPECT_EQ(pass.device(), fake_.pool->device());
  pass.BeginOp(1, nullptr);  // ops may come in any order
  EXPECT_EQ(pass.Serve(64, stream_), At(192));
  EXPECT_EQ(pass.Serve(256, stream_), nullptr) << "foreseen to go upstream";
  pass.EndOp();
  pass.BeginOp(0, nullptr);
  EXPECT_EQ(pass.Serve(128, stream_), At(0));
  EXPECT_EQ(pass.Serve(64, stream_), At(128));
  pass.EndOp();
  EXPECT_EQ(pass.hits(), 3);
  EXPECT_EQ(pass.misses(), 0);
  for (const Bytes offset : {0, 128, 192}) arena_.Free(At(offset));
}

TEST_F(PassTest, ASizeFitsIfItIsTheSameWhenRounded) {
  Pass pass(*fake_.pool, arena_, bound_, stream_, Fill::kNone);
  for (const Bytes size : {65, 127, 128}) {
    pass.BeginOp(0, nullptr);
    EXPECT_EQ(pass.Serve(size, stream_), At(0)) << size;
    arena_.Free(At(0));
  }
  for (const Bytes size : {Bytes{1}, Bytes{64}, Bytes{129}, Bytes{4096}, std::numeric_limits<Bytes>::max()}) {
    pass.BeginOp(0, nullptr);
    EXPECT_EQ(pass.Serve(size, stream_), nullptr) << size;
  }
  EXPECT_EQ(pass.hits(), 3);
  EXPECT_EQ(pass.misses(), 5);
}

TEST_F(PassTest, AMismatchDoesNotDriftIntoTheNextAllocationOrOp) {
  Pass pass(*fake_.pool, arena_, bound_, stream_, Fill::kNone);
  pass.BeginOp(0, nullptr);
  EXPECT_EQ(pass.Serve(4096, stream_), nullptr);  // a workspace has another size today
  EXPECT_EQ(pass.Serve(64, stream_), At(128));
  EXPECT_EQ(pass.Serve(64, stream_), nullptr) << "more than planned";
  EXPECT_EQ(pass.Serve(64, stream_), nullptr);
  pass.EndOp();
  pass.BeginOp(1, nullptr);
  EXPECT_EQ(pass.Serve(64, stream_), At(192));
  pass.EndOp();
  EXPECT_EQ(pass.hits(), 2);
  EXPECT_EQ(pass.misses(), 3);
  arena_.Free(At(128));
  arena_.Free(At(192));
}

TEST_F(PassTest, BetweenOpsNothingIsForeseen) {
  Pass pass(*fake_.pool, arena_, bound_, stream_, Fill::kNone);
  EXPECT_EQ(pass.Serve(128, stream_), nullptr);
  pass.BeginOp(0, nullptr);
  pass.EndOp();
  EXPECT_EQ(pass.Serve(128, stream_), nullptr);
  EXPECT_EQ(pass.misses(), 2);
}

TEST_F(PassTest, AnotherStreamIsAMiss) {
  Pass pass(*fake_.pool, arena_, bound_, stream_, Fill::kNone);
  pass.BeginOp(0, nullptr);
  EXPECT_EQ(pass.Serve(128, nullptr), nullptr);
  EXPECT_EQ(pass.Serve(64, stream_), At(128));
  arena_.Free(At(128));
}

// Field fault 1: same sizes, same order, other frees.
TEST_F(PassTest, WhatLivesLongerThanPlannedIsNotOverwritten) {
  const BoundTable& reuse = *arena_.Bind(OneOpEach({{0, 128}, {64, 128}}));
  Pass pass(*fake_.pool, arena_, reuse, stream_, Fill::kNone);
  pass.BeginOp(0, nullptr);
  EXPECT_EQ(pass.Serve(128, stream_), At(0));
  pass.EndOp();
  pass.BeginOp(1, nullptr);
  EXPECT_EQ(pass.Serve(128, stream_), nullptr);
  EXPECT_EQ(pass.misses(), 1);
  arena_.Free(At(0));
}

TEST_F(PassTest, ServesInPlaceForTheRightGiverOnly) {
  Pass pass(*fake_.pool, arena_, bound_, stream_, Fill::kNone);
  pass.BeginOp(1, nullptr);
  ASSERT_EQ(pass.Serve(64, stream_), At(192));
  for (const void* giver :
       {static_cast<const void*>(nullptr), static_cast<const void*>(At(0)), static_cast<const void*>(this)}) {
    pass.BeginOp(2, giver);
    EXPECT_EQ(pass.Serve(64, stream_), nullptr);
  }
  pass.BeginOp(2, At(192));
  EXPECT_EQ(pass.Serve(64, stream_), At(192));
  pass.BeginOp(2, At(192));
  EXPECT_EQ(pass.Serve(64, stream_), nullptr) << "two share it already";
  arena_.Free(At(192));
  arena_.Free(At(192));
  EXPECT_EQ(arena_.LiveBytes(), 0);
}

// The giver is at the right address, but in a longer slot of another plan: a stranger.
TEST_F(PassTest, AStrangerAtTheGiversAddressGivesNothing) {
  const BoundTable& other = *arena_.Bind(OneOpEach({{192, 128}}));
  ASSERT_EQ(arena_.Serve(other.entries[0], false), At(192));
  Pass pass(*fake_.pool, arena_, bound_, stream_, Fill::kNone);
  pass.BeginOp(2, At(192));
  EXPECT_EQ(pass.Serve(64, stream_), nullptr);
  arena_.Free(At(192));
}

TEST_F(PassTest, NestedPassesInterruptEachOther) {
  Pass outer(*fake_.pool, arena_, bound_, stream_, Fill::kNone);
  outer.BeginOp(0, nullptr);
  EXPECT_EQ(outer.Serve(128, stream_), At(0));
  {
    PlannedArena& inner_arena = fake_.pool->Borrow(table_.height);
    ASSERT_NE(&inner_arena, &arena_);
    const BoundTable& inner_table = *inner_arena.Bind(table_);
    Pass inner(*fake_.pool, inner_arena, inner_table, stream_, Fill::kNone);
    EXPECT_EQ(CurrentThread().pass, &inner);
    inner.BeginOp(0, nullptr);
    EXPECT_EQ(inner.Serve(128, stream_), inner_arena.arena().base());
    inner_arena.Free(inner_arena.arena().base());
    fake_.pool->Return(inner_arena);
  }
  EXPECT_EQ(CurrentThread().pass, &outer);
  EXPECT_EQ(outer.Serve(64, stream_), At(128)) << "it goes on where it was";
  arena_.Free(At(0));
  arena_.Free(At(128));
}

TEST_F(PassTest, EndsOnExceptions) {
  try {
    Pass pass(*fake_.pool, arena_, bound_, stream_, Fill::kNone);
    pass.BeginOp(0, nullptr);
    throw std::runtime_error("an op failed");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(CurrentThread().pass, nullptr);
  EXPECT_EQ(fake_.pool->Stats().passes, 1);
}

// Row 7: another thread's allocations never fall into this thread's plan.
TEST_F(PassTest, IsSeenByItsThreadOnly) {
  const Pass pass(*fake_.pool, arena_, bound_, stream_, Fill::kNone);
  std::thread([] { EXPECT_EQ(CurrentThread().pass, nullptr); }).join();
}

TEST_F(PassTest, CountsForThePool) {
  for (int round = 0; round < 2; ++round) {
    Pass pass(*fake_.pool, arena_, bound_, stream_, Fill::kNone);
    pass.BeginOp(1, nullptr);
    EXPECT_NE(pass.Serve(64, stream_), nullptr);
    (void)pass.Serve(256, stream_);
    (void)pass.Serve(256, stream_);
    arena_.Free(At(192));
  }
  const PoolStats stats = fake_.pool->Stats();
  EXPECT_EQ(stats.passes, 2);
  EXPECT_EQ(stats.hits, 2);
  EXPECT_EQ(stats.misses, 2);
  EXPECT_EQ(stats.upstream, 2);
}

// The pass's stream may be gone when the last tensor goes, and nothing orders another stream after the fill.
TEST_F(PassTest, FillsNothingAfterItsEnd) {
  {
    Pass pass(*fake_.pool, arena_, bound_, stream_, Fill::kNan);
    pass.BeginOp(0, nullptr);
    ASSERT_EQ(pass.Serve(128, stream_), At(0));
    ASSERT_EQ(pass.Serve(64, stream_), At(128));
    arena_.Free(At(0));
    EXPECT_THAT(fake_.backend->fills(),
                ::testing::ElementsAre(FakeBackend::FillCall{At(0), 128, std::byte{0xFF}, stream_}));
  }
  std::thread([&] { arena_.Free(At(128)); }).join();
  arena_.Release();
  ASSERT_TRUE(arena_.TryHold());
  EXPECT_EQ(arena_.LiveBytes(), 0);
  EXPECT_EQ(fake_.backend->fills().size(), 1U);
}

}  // namespace
}  // namespace livepool
