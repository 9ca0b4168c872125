#include "livepool/eager/kind.h"

#include <gtest/gtest.h>

namespace livepool {
namespace {

constexpr Position kAlive = PassRecord::kAlive;

// Three allocations: the second outlives the pass.
PassRecord Record(const std::vector<Position>& deaths) {
  PassRecord record;
  for (std::size_t i = 0; i < deaths.size(); ++i) {
    record.keys.push_back({.size = 64 * static_cast<Bytes>(i + 1), .site = static_cast<Site>(i)});
  }
  record.deaths = deaths;
  return record;
}

std::vector<Lifetime> LifetimesOf(const Kind& kind) {
  std::vector<Lifetime> lifetimes;
  for (const Buffer& buffer : kind.MakeProblem(64).buffers) lifetimes.push_back(buffer.lifetime);
  return lifetimes;
}

TEST(KindTest, TheFirstPassGivesTheLifetimes) {
  const Kind kind(Record({2, kAlive, 3}));
  const Problem problem = kind.MakeProblem(64);
  EXPECT_EQ(problem.buffers, (std::vector<Buffer>{{.id = 0, .lifetime = {0, 2}, .size = 64, .alignment = 64},
                                                  {.id = 2, .lifetime = {2, 3}, .size = 192, .alignment = 64}}));
  EXPECT_TRUE(kind.escaping(1));
}

TEST(KindTest, TwoCleanOccurrencesClearAnEscape) {
  Kind kind(Record({2, kAlive, 3}));
  EXPECT_EQ(kind.Merge({2, 3, 3}), Kind::Change::kNone);
  EXPECT_FALSE(kind.settled()) << "the next occurrence must be looked at";
  EXPECT_EQ(kind.Merge({2, kAlive, 3}), Kind::Change::kNone) << "not in a row";
  EXPECT_TRUE(kind.settled());
  EXPECT_EQ(kind.Merge({2, 3, 3}), Kind::Change::kNone);
  EXPECT_EQ(kind.Merge({2, 2, 3}), Kind::Change::kPack);
  EXPECT_EQ(LifetimesOf(kind), (std::vector<Lifetime>{{0, 2}, {1, 3}, {2, 3}})) << "the longest of the clean ones";
}

TEST(KindTest, WhatWasPlannedAndEscapedMustBeCleanForLong) {
  Kind kind(Record({2, 2, 3}));
  EXPECT_EQ(kind.Escaped(0), Kind::Change::kFewer);
  EXPECT_EQ(kind.Escaped(0), Kind::Change::kNone) << "known";
  int clean = 1;
  while (kind.Merge({2, 2, 3}) == Kind::Change::kNone) ++clean;
  EXPECT_EQ(clean, 16);
  EXPECT_EQ(kind.Escaped(0), Kind::Change::kFewer);
  clean = 1;
  while (kind.Merge({2, 2, 3}) == Kind::Change::kNone) ++clean;
  EXPECT_EQ(clean, 128);
}

TEST(KindTest, LateOnceIsNotLate) {
  Kind kind(Record({2, 2, 3}));
  EXPECT_EQ(kind.Merge({3, 2, 3}), Kind::Change::kNone);
  for (std::uint32_t i = 0; i < Kind::kLateWindow; ++i) kind.MergeAsPlanned();
  EXPECT_EQ(kind.Merge({3, 2, 3}), Kind::Change::kNone) << "too long ago";
  EXPECT_EQ(kind.Merge({2, 2, 3}), Kind::Change::kNone);
  EXPECT_EQ(kind.Merge({3, 2, 3}), Kind::Change::kPack) << "twice within the window";
  EXPECT_EQ(LifetimesOf(kind)[0], (Lifetime{0, 3}));
}

TEST(KindTest, EarlierIsNoChange) {
  Kind kind(Record({3, 2, 3}));
  EXPECT_EQ(kind.Merge({1, 2, 3}), Kind::Change::kNone);
  EXPECT_EQ(LifetimesOf(kind)[0], (Lifetime{0, 3}));
}

}  // namespace
}  // namespace livepool
