// Every single driver call of a scenario fails, in turn: nothing is lost, nothing leaks, what failed works when
// it is done again.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "allocator/backend/fake_driver.h"
#include "livepool/base/error.h"

namespace livepool {

// One run of a scenario, in which the n-th driver call fails.
class FailureWalk {
 public:
  // Which calls fail: that one, or all from it on, until a step has thrown or Heal is called. In the second case
  // the rollback fails too, and what it could not undo is put in order by what comes later.
  enum class Kind { kOnce, kUntilHealed };
  enum class Idle { kStays, kMayGo };  // may a step give back memory that was mapped before it?

  FailureWalk(const FakeDriver::Options& options, int n, Kind kind) : driver_(options), kind_(kind) {
    kind == Kind::kOnce ? driver_.FailNthCall(n) : driver_.FailFromNthCall(n);
  }

  FakeDriver& driver() { return driver_; }

  // A step that may throw livepool::Error because of the failure. The books are in order then, the driver is
  // healed, and the same step works.
  void Step(const std::function<void()>& step, Idle idle = Idle::kStays) {
    const Bytes mapped_before = driver_.mapped();
    try {
      step();
      return;
    } catch (const Error& error) {
      SCOPED_TRACE(error.what());
      ASSERT_NE(driver_.failed_function(), "") << "failed without an injected failure";
      if (kind_ == Kind::kOnce) ExpectRolledBack(mapped_before, idle);
    }
    Heal();
    EXPECT_NO_THROW(step()) << "expected: the request works once the driver does";
  }
  void Heal() { driver_.Heal(); }

 private:
  void ExpectRolledBack(Bytes mapped_before, Idle idle) const {
    EXPECT_LE(driver_.mapped(), mapped_before) << "bytes are mapped that nobody has";
    if (idle == Idle::kStays) {
      EXPECT_EQ(driver_.mapped(), mapped_before) << "memory was lost";
    }
    EXPECT_EQ(driver_.allocated(), driver_.mapped()) << "pages without an address";
    EXPECT_EQ(driver_.open_handles(), 0);
  }

  FakeDriver driver_;
  const Kind kind_;
};

// Runs `scenario` for n = 1, 2, … until it ends before its n-th call; it made at least `at_least` calls.
// The scenario ends with all its memory given back.
inline void WalkOverEveryCall(const FakeDriver::Options& options, int at_least,
                              const std::function<void(FailureWalk&)>& scenario,
                              const std::vector<FailureWalk::Kind>& kinds = {FailureWalk::Kind::kOnce,
                                                                             FailureWalk::Kind::kUntilHealed}) {
  for (const FailureWalk::Kind kind : kinds) {
    int n = 1;
    for (bool failed = true; failed; ++n) {
      FailureWalk walk(options, n, kind);
      SCOPED_TRACE("driver call " + std::to_string(n) + " fails" +
                   (kind == FailureWalk::Kind::kOnce ? "" : ", and so do those after it"));
      scenario(walk);
      const FakeDriver& driver = walk.driver();
      const std::string failure = driver.failed_function();
      SCOPED_TRACE("it was " + failure);
      EXPECT_THAT(driver.misuse(), ::testing::IsEmpty());
      // A driver that refuses to restore the caller's context cannot be helped.
      if (driver.refused("CtxPopCurrent") == 0) {
        EXPECT_EQ(driver.pushed_contexts(), 0);
      }
      EXPECT_EQ(driver.mapped(), 0) << "expected: the scenario has given everything back";
      EXPECT_EQ(driver.allocated(), 0) << "pages without an address";
      EXPECT_EQ(driver.open_handles(), 0);
      failed = !failure.empty();
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(n, at_least) << "the walk ended early";
  }
}

}  // namespace livepool
