// Note [Loans]: what a pass leaves to its caller, between that pass and the next one.
#include "livepool/pool/loan.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>

#include "allocator/pool/test_tables.h"

namespace livepool {
namespace {

using testing::FakePool;
using testing::OneOpEach;

void OnAnotherThread(const std::function<void()>& work) { std::thread(work).join(); }

// Gives a slot back to its arena, as the DataPtr of an output would.
class SlotLoan final : public Loan {
 public:
  SlotLoan(PlannedArena& arena, std::byte* slot, Bytes size) : Loan(slot, size), arena_(arena), slot_(slot) {}
  std::optional<By> ended_by;

 private:
  void GiveBack(By who) noexcept override {
    ended_by = who;
    arena_.Free(slot_);
  }
  PlannedArena& arena_;
  std::byte* const slot_;
};

class LoanTest : public ::testing::Test {
 protected:
  // A pass with one output at [0, 128), which the arena and the returned "tensor" hold.
  std::shared_ptr<SlotLoan> RunPass() {
    arena_ = &fake_.pool->Borrow(256);
    const BoundTable& table = *arena_->Bind(OneOpEach({{0, 128}, {128, 128}}));
    std::byte* slot = arena_->Serve(table.entries[0], false);
    EXPECT_NE(slot, nullptr);
    auto loan = std::make_shared<SlotLoan>(*arena_, slot, 128);
    arena_->Lend(loan);
    fake_.pool->Return(*arena_);
    return loan;
  }
  // The arena that a pass of the calling thread takes.
  PlannedArena* NextPass(Bytes height = 256) {
    PlannedArena& arena = fake_.pool->Borrow(height);
    fake_.pool->Return(arena);
    return &arena;
  }

  FakePool fake_;
  PlannedArena* arena_ = nullptr;
};

TEST_F(LoanTest, TheOwnersNextPassEndsItAndTakesTheArena) {
  const auto tensor = RunPass();
  EXPECT_EQ(fake_.pool->Stats().live_bytes, 128);
  EXPECT_EQ(NextPass(), arena_);
  EXPECT_EQ(tensor->ended_by, Loan::By::kPass);
  EXPECT_EQ(fake_.pool->Stats().live_bytes, 0);
}

TEST_F(LoanTest, ATensorThatDiesLateFreesNobodyElsesSlot) {
  const auto tensor = RunPass();
  const auto other = RunPass();  // on the same bytes
  tensor->End(Loan::By::kTensor);
  EXPECT_EQ(tensor->ended_by, Loan::By::kPass) << "given back once";
  EXPECT_EQ(fake_.pool->Stats().live_bytes, 128);
  other->End(Loan::By::kTensor);
  EXPECT_EQ(fake_.pool->Stats().live_bytes, 0);
}

TEST_F(LoanTest, ATensorThatDiesInTimeGivesItsSlotBackFromAnyThread) {
  auto tensor = RunPass();
  OnAnotherThread([&] { std::exchange(tensor, nullptr)->End(Loan::By::kTensor); });
  EXPECT_EQ(fake_.pool->Stats().live_bytes, 0);
  EXPECT_EQ(NextPass(), arena_);
}

TEST_F(LoanTest, OtherThreadsTakeAnotherArena) {
  const auto tensor = RunPass();
  OnAnotherThread([&] { EXPECT_NE(NextPass(), arena_); });
  EXPECT_FALSE(tensor->ended_by);
  EXPECT_EQ(fake_.pool->Stats().live_bytes, 128);
  tensor->End(Loan::By::kTensor);
  OnAnotherThread([&] { EXPECT_EQ(NextPass(), arena_) << "the first that fits"; });
}

TEST_F(LoanTest, OfAThreadThatIsGoneItLastsAsLongAsTheTensor) {
  std::shared_ptr<SlotLoan> tensor;
  OnAnotherThread([&] { tensor = RunPass(); });
  for (int i = 0; i < 3; ++i)
    OnAnotherThread([&] { EXPECT_NE(NextPass(), arena_) << "also a thread at the same address"; });
  EXPECT_NE(NextPass(), arena_);
  EXPECT_FALSE(tensor->ended_by);
}

TEST_F(LoanTest, OneAboveTheHeightOfAPassIsInNobodysWay) {
  PlannedArena& arena = fake_.pool->Borrow(256);
  const BoundTable& table = *arena.Bind(OneOpEach({{0, 128}, {128, 128}}));
  const auto tensor = std::make_shared<SlotLoan>(arena, arena.Serve(table.entries[1], false), 128);
  arena.Lend(tensor);
  fake_.pool->Return(arena);
  OnAnotherThread([&] { EXPECT_EQ(NextPass(128), &arena); });
  EXPECT_FALSE(tensor->ended_by);
}

TEST_F(LoanTest, ATrimKeepsTheBytesThatATensorSees) {
  auto tensor = RunPass();
  const Bytes page = fake_.backend->Granularity();
  (void)NextPass(4 * page);
  ASSERT_EQ(arena_->arena().mapped(), 4 * page);
  ASSERT_TRUE(tensor->ended_by) << "so no slot is live";
  EXPECT_EQ(fake_.pool->Trim(), 3 * page);
  tensor.reset();
  EXPECT_EQ(fake_.pool->Trim(), page);
}

TEST_F(LoanTest, OfNoBytesEndsWithTheNextPassToo) {
  class Other final : public Loan {
   public:
    bool over = false;

   private:
    void GiveBack(By) noexcept override { over = true; }
  };
  arena_ = &fake_.pool->Borrow(256);
  const auto loan = std::make_shared<Other>();
  arena_->Lend(loan);
  fake_.pool->Return(*arena_);
  OnAnotherThread([&] { EXPECT_EQ(NextPass(), arena_); });
  EXPECT_FALSE(loan->over);
  EXPECT_EQ(NextPass(), arena_);
  EXPECT_TRUE(loan->over);
}

// The tensor's deleter and the next pass at the same moment: the slot is freed once, and never while the tensor's own
// free is under way.
TEST_F(LoanTest, TheTensorAndTheNextPassMayMeet) {
  for (int i = 0; i < 300; ++i) {
    auto tensor = RunPass();
    std::thread dropper([&] { std::exchange(tensor, nullptr)->End(Loan::By::kTensor); });
    (void)NextPass();
    dropper.join();
    fake_.pool->Settle();
    ASSERT_EQ(fake_.pool->Stats().live_bytes, 0);
  }
}

}  // namespace
}  // namespace livepool
