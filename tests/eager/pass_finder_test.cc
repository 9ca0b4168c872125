#include "livepool/eager/pass_finder.h"

#include <gtest/gtest.h>

#include <random>

namespace livepool {
namespace {

using State = PassFinder::State;
constexpr std::size_t kLength = 20;  // of a pass

bool RunNow(const std::function<void()>& job) {
  job();
  return true;
}

class PassFinderTest : public ::testing::Test {
 protected:
  // One pass, each buffer of which is freed at once; returns the cuts.
  int Pass(PassFinder& finder, bool served) {
    int cuts = 0;
    for (std::size_t i = 0; i < kLength; ++i) {
      cuts += finder.Next({.size = 64, .site = static_cast<Site>(1000 + i)}, i == 0 ? 10 : 500) ? 1 : 0;
      finder.NoteAddress(&memory_, served);
      finder.NoteFree(&memory_);
    }
    return cuts;
  }
  void Noise(PassFinder& finder, std::uint64_t allocations) {
    for (std::uint64_t i = 0; i < allocations; ++i) {
      EXPECT_FALSE(finder.Next({.size = 64, .site = static_cast<Site>(random_())}, static_cast<Site>(random_() % 400)));
      finder.NoteAddress(&memory_, false);
      finder.NoteFree(&memory_);
    }
  }

  std::mt19937 random_{1};
  int memory_ = 0;
};

TEST_F(PassFinderTest, OneCutForEachPassAfterTheFirstWindow) {
  PassFinder finder(&RunNow);
  EXPECT_EQ(finder.state(), State::kLooking);
  for (std::size_t i = 0; i < PassFinder::kFirstWindow / kLength; ++i) EXPECT_EQ(Pass(finder, false), 0);
  (void)Pass(finder, false);
  EXPECT_EQ(finder.state(), State::kServing);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(Pass(finder, true), 1) << i;
  EXPECT_EQ(finder.version(), 1) << "larger windows found the same";
}

TEST_F(PassFinderTest, ASearchThatHasNotEndedIsNotWaitedFor) {
  std::vector<std::function<void()>> jobs;
  PassFinder finder([&](std::function<void()> job) {
    jobs.push_back(std::move(job));
    return true;
  });
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Pass(finder, false), 0);
  ASSERT_EQ(jobs.size(), 1) << "one at a time";
  jobs[0]();
  EXPECT_EQ(Pass(finder, false), 1);
}

TEST_F(PassFinderTest, AProgramThatDoesNotRepeatIsRecordedEverMoreRarely) {
  std::uint64_t searches = 0;
  PassFinder finder([&](const std::function<void()>& job) {
    ++searches;
    return RunNow(job);
  });
  Noise(finder, 2 * PassFinder::kMaxWindow + 10);
  EXPECT_EQ(finder.state(), State::kAsleep);
  const std::uint64_t once = searches;
  Noise(finder, PassFinder::kSleep - 100);
  EXPECT_EQ(searches, once);
  Noise(finder, 2 * PassFinder::kMaxWindow + 200);
  EXPECT_EQ(searches, 2 * once);
  EXPECT_EQ(finder.state(), State::kAsleep);
  Noise(finder, PassFinder::kSleep + 100);
  EXPECT_EQ(searches, 2 * once) << "it sleeps twice as long now";
}

TEST_F(PassFinderTest, ARuleThatServesLittleIsGivenUp) {
  PassFinder finder(&RunNow);
  while (finder.version() == 0) Pass(finder, false);
  std::uint64_t passes = 0;
  for (; finder.state() != State::kAsleep && passes < 10000; ++passes) Pass(finder, false);
  EXPECT_EQ(finder.state(), State::kAsleep);
  EXPECT_FALSE(finder.rule().has_value());
  // Looked for twice: the windows of both searches, and their reviews.
  EXPECT_LE(passes * kLength, 4 * PassFinder::kSettledWindow + 2 * PassFinder::kReview + 1000);
}

// A model is loaded, and then the program begins.
TEST_F(PassFinderTest, NoiseAtTheBeginIsForgotten) {
  PassFinder finder(&RunNow);
  Noise(finder, 700);
  for (int i = 0; i < 100; ++i) (void)Pass(finder, true);
  EXPECT_EQ(Pass(finder, true), 1);
}

TEST_F(PassFinderTest, SleepsWhereNothingCanBeSearched) {
  PassFinder finder([](const std::function<void()>&) { return false; });
  for (std::size_t i = 0; i < 2 * PassFinder::kFirstWindow / kLength; ++i) EXPECT_EQ(Pass(finder, false), 0);
  EXPECT_EQ(finder.state(), State::kAsleep);
}

}  // namespace
}  // namespace livepool
