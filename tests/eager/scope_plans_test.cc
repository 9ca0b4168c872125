#include "livepool/eager/scope_plans.h"

#include <gtest/gtest.h>

#include <string>

#include "eager/test_units.h"

namespace livepool {
namespace {

using testing::ShortLived;

class ScopePlansTest : public ::testing::Test {
 protected:
  // A pass of which `hits` allocations were served, and which followed no unit to its end.
  bool Pass(const std::string& keys, std::int64_t hits = 0) {
    const PassRecord record = ShortLived(keys);
    const auto size = static_cast<std::int64_t>(record.size());
    return scope_->End(
        {.record = [&] { return record; }, .allocations = record.size(), .hits = hits, .misses = size - hits});
  }
  std::int64_t units() const { return scope_->Stats().units; }
  static std::string Numbered(int i) {
    return {'a', '1', ' ', static_cast<char>('b' + i / 9), static_cast<char>('1' + i % 9), ' ', 'z', '1'};
  }

  bool jobs_run_ = true;
  std::shared_ptr<ScopePlans> scope_ =
      std::make_shared<ScopePlans>("test", 64, [this](const std::function<void()>& job) {
        if (jobs_run_) job();
        return jobs_run_;
      });
};

TEST_F(ScopePlansTest, AKindGetsItsPlanAtItsFirstPass) {
  Pass("a1 b2 c3");
  EXPECT_EQ(units(), 1);
  EXPECT_EQ(scope_->Begin().units->units()[0]->keys(), testing::Keys("a1 b2 c3"));
  EXPECT_EQ(scope_->Stats().arena_bytes, 64 * (2 + 3));
}

TEST_F(ScopePlansTest, APassThatWasServedWellMustComeTwice) {
  Pass("a1 b2 c3");
  Pass("a1 b2 c3 d4", /*hits=*/3);
  EXPECT_EQ(units(), 1) << "the first kind, which has gone on";
  Pass("a1 b2 c3 d4", 3);
  EXPECT_EQ(units(), 2);
}

TEST_F(ScopePlansTest, WhereLittleRepeatsAKindMustComeTwice) {
  const auto limit = static_cast<int>(ScopePlans::kUnproven);
  for (int i = 0; i <= limit; ++i) Pass(Numbered(i));
  EXPECT_EQ(units(), limit);
  Pass(Numbered(limit));
  EXPECT_EQ(units(), limit + 1);
  Pass(Numbered(0));  // comes again: the program repeats after all
  Pass(Numbered(limit + 1));
  EXPECT_EQ(units(), limit + 2);
}

TEST_F(ScopePlansTest, WhatDoesNotComeAgainGoes) {
  Pass("a1 b2 c3");
  Pass("x1 y2 z3");
  for (std::uint64_t i = 0; i < ScopePlans::kTrial; ++i) Pass("x1 y2 z3");
  ASSERT_EQ(units(), 1);
  EXPECT_EQ(scope_->Begin().units->units()[0]->keys(), testing::Keys("x1 y2 z3"));
}

TEST_F(ScopePlansTest, KeepsTheKindsThatWereUsedLast) {
  const auto limit = static_cast<int>(ScopePlans::kMaxKinds);
  for (int i = 0; i <= limit; ++i) {
    Pass(Numbered(i));
    Pass(Numbered(i));
  }
  EXPECT_EQ(scope_->Stats().kinds, limit);
  EXPECT_EQ(scope_->Begin().units->FindAt(testing::Keys(Numbered(0)), 2), std::nullopt);
  EXPECT_NE(scope_->Begin().units->FindAt(testing::Keys(Numbered(limit)), 2), std::nullopt);
}

TEST_F(ScopePlansTest, AJobThatCannotRunIsAskedForAgain) {
  jobs_run_ = false;
  Pass("a1 b2 c3");
  EXPECT_EQ(units(), 0);
  EXPECT_EQ(scope_->Stats().kinds, 1);
  jobs_run_ = true;
  Pass("x1");
  EXPECT_EQ(units(), 2);
}

TEST_F(ScopePlansTest, AUnitThatServesTooLittleIsDropped) {
  Pass("a1 b2 c3");
  const auto start = scope_->Begin();
  for (std::uint32_t i = 1; i <= ScopePlans::kPoorPasses; ++i) {
    const bool idle = scope_->End({.record = [] { return PassRecord(); }, .main = start.units->units()[0].get()});
    EXPECT_EQ(idle, i == ScopePlans::kPoorPasses);
    EXPECT_EQ(units(), i == ScopePlans::kPoorPasses ? 0 : 1);
  }
  EXPECT_TRUE(scope_->Begin().units->empty());
}

TEST_F(ScopePlansTest, TrustComesWithAPassThatWasServedAndGoesWithThoseThatWereNot) {
  Pass("a1 b2 c3");
  EXPECT_FALSE(scope_->Begin().trusted);
  Pass("a1 b2 c3", /*hits=*/3);
  for (std::uint32_t i = 0; i < ScopePlans::kPoorPasses; ++i) {
    EXPECT_TRUE(scope_->Begin().trusted);
    EXPECT_EQ(Pass("a1 b2 c3"), i + 1 == ScopePlans::kPoorPasses) << "memory may be idle";
  }
  EXPECT_FALSE(scope_->Begin().trusted);
}

// An escape is taken out of the plan at once, and nothing else moves.
TEST_F(ScopePlansTest, AnEscapeLosesItsSlot) {
  Pass("a1 b2 c3");
  const auto before = scope_->Begin();
  const std::uint64_t kind = before.units->units()[0]->kind_hash();
  scope_->End({.record = [] { return PassRecord(); }, .escaped = {{kind, 1}}});
  const auto after = scope_->Begin();
  EXPECT_EQ(before.units->units()[0]->planned(), 3U);
  EXPECT_EQ(after.units->units()[0]->planned(), 2U);
  EXPECT_EQ(after.units->units()[0]->height(), before.units->units()[0]->height());
  scope_->End({.record = [] { return PassRecord(); }, .complete = false, .escaped = {{kind, 2}}});
  EXPECT_EQ(scope_->Begin().units->units()[0]->planned(), 2U) << "ended by an exception";
}

}  // namespace
}  // namespace livepool
