#include "livepool/eager/found_passes.h"

#include <gtest/gtest.h>

#include <vector>

#include "livepool/backend/host_backend.h"

namespace livepool {
namespace {

const auto* const kTop = reinterpret_cast<const std::byte*>(std::uintptr_t{1} << 40);

bool RunNow(const std::function<void()>& job) {
  job();
  return true;
}

ArenaPool& Pool() {
  static auto* pool = new ArenaPool({}, std::make_unique<HostBackend>(), 64_MiB);
  return *pool;
}

// A thread that runs a model in a loop, without torch.
class FoundPassesTest : public ::testing::Test {
 protected:
  const std::byte* Make(Bytes size, Site site) {
    if (const std::byte* slot = found_.Serve(size, nullptr, kTop - site)) {
      ++hits_;
      return slot;
    }
    const std::byte* address = &upstream_[next_++ % sizeof(upstream_)];
    found_.OnAlloc({}, address, size, nullptr);
    return address;
  }
  void Drop(const std::byte* address, Site depth) {
    found_.OnAnyFree(address, kTop - depth);
    if (PlannedArena* arena = Pool().Find(address)) return arena->Free(address);
    found_.OnFree({}, address);
  }
  // Returns what was served of 19 that die inside; the output lives until the next pass has ended.
  int Pass() {
    hits_ = 0;
    const std::byte* before = nullptr;
    for (int i = 0; i < 20; ++i) {
      const std::byte* made = Make(64 * (1 + i % 5), static_cast<Site>(1000 + 16 * i));
      if (before != nullptr) Drop(before, 700);
      before = made;
    }
    if (output_ != nullptr) Drop(output_, 100);
    output_ = before;
    return hits_;
  }

  FoundPasses found_{"test", Pool(), nullptr, kTop, Fill::kNone, &RunNow};
  std::byte upstream_[64]{};
  std::size_t next_ = 0;
  int hits_ = 0;
  const std::byte* output_ = nullptr;
};

TEST_F(FoundPassesTest, ServesAllButTheOutput) {
  EXPECT_EQ(found_.counts()->Read().state, PassFinder::State::kLooking);
  for (int i = 0; i < 100; ++i) Pass();
  EXPECT_EQ(Pass(), 19);
  const FoundStats stats = found_.counts()->Read();
  EXPECT_EQ(stats.state, PassFinder::State::kServing);
  EXPECT_EQ(stats.allocations, 101 * 20);
  EXPECT_GT(stats.passes.hits, 50 * 19);
  EXPECT_EQ(stats.passes.units, 1);
  EXPECT_GT(stats.passes.recorded_peak_bytes, 0);
}

TEST_F(FoundPassesTest, APassThatIsEndedFromOutsideBeginsAgainAtTheNextCut) {
  for (int i = 0; i < 100; ++i) Pass();
  ASSERT_NE(found_.arena(), nullptr);
  found_.End();
  EXPECT_EQ(found_.arena(), nullptr);
  (void)Pass();
  EXPECT_EQ(Pass(), 19);
}

TEST_F(FoundPassesTest, WhatTheThreadDidIsKnownWhenItHasEnded) {
  std::shared_ptr<const FoundCounts> counts;
  {
    FoundPasses other("other", Pool(), nullptr, kTop, Fill::kNone, &RunNow);
    counts = other.counts();
    (void)other.Serve(64, nullptr, kTop - 10);
  }
  EXPECT_EQ(counts->Read().allocations, 1);
}

TEST_F(FoundPassesTest, ALimitOfTheArenasCostsMissesOnly) {
  // The pool's address space is 64 MiB for each arena: a plan beyond that gets none.
  std::vector<const std::byte*> big;
  for (int i = 0; i < 60; ++i) {
    for (int k = 0; k < 20; ++k) {
      const std::byte* made = Make(64_MiB, static_cast<Site>(1000 + 16 * k));
      big.push_back(made);
    }
    for (const std::byte* each : big) Drop(each, 100);
    big.clear();
  }
  EXPECT_EQ(found_.arena(), nullptr);
  EXPECT_EQ(hits_, 0);
}

}  // namespace
}  // namespace livepool
