#include "livepool/eager/cut_search.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace livepool {
namespace {

constexpr Site kLoop = 100;
constexpr Site kInside = 900;

// Passes one after the other, each buffer freed before the next but one.
struct Program {
  std::vector<Token> tokens;
  std::vector<std::size_t> begins;

  void Make(Site site, Site depth, Bytes size = 64) {
    const auto now = static_cast<Position>(tokens.size());
    tokens.push_back({.key = {.size = size, .site = site}, .depth = depth, .death = now + 2});
  }
  // `depth`: of the free before the pass. Its sites are of two layers that are alike.
  void Pass(Site first, Site depth, Bytes size = 64, int length = 20) {
    begins.push_back(tokens.size());
    Make(first, depth, size);
    tokens.back().death = static_cast<Position>(tokens.size());  // nothing lives across the layers
    for (int i = 1; i < length; ++i) Make(static_cast<Site>(2000 + i % (length / 2)), kInside, size);
    for (std::size_t i = begins.back(); i < tokens.size(); ++i) {
      tokens[i].death = std::min(tokens[i].death, static_cast<Position>(tokens.size()));
    }
  }
  std::vector<std::size_t> CutsBy(const CutRule& rule) const {
    std::vector<std::size_t> cuts;
    SiteContext context;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      context.Add(tokens[i].key.site);
      if (rule.Cuts(tokens[i].depth, context)) cuts.push_back(i);
    }
    return cuts;
  }
};

TEST(CutSearchTest, AFreeAtTheLoopsDepthBeginsAPass) {
  Program program;
  for (int i = 0; i < 10; ++i) program.Pass(1000, kLoop);
  const auto rule = FindCuts(program.tokens);
  ASSERT_TRUE(rule.has_value());
  EXPECT_EQ(rule->level, kLoop);
  EXPECT_EQ(program.CutsBy(*rule), program.begins);
  EXPECT_GT(Worth(program.tokens, *rule), 0.95);
}

TEST(CutSearchTest, SizesMayDiffer) {
  Program program;
  for (int i = 0; i < 10; ++i) program.Pass(1000, kLoop, 64 * (i + 1));
  const auto rule = FindCuts(program.tokens);
  ASSERT_TRUE(rule.has_value());
  EXPECT_EQ(program.CutsBy(*rule), program.begins);
}

TEST(CutSearchTest, TwoModelsAreTwoKindsOfPass) {
  Program program;
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) random() % 2 == 0 ? program.Pass(1000, kLoop) : program.Pass(1016, kLoop, 64, 32);
  const auto rule = FindCuts(program.tokens);
  ASSERT_TRUE(rule.has_value());
  EXPECT_EQ(program.CutsBy(*rule), program.begins);
}

TEST(CutSearchTest, WhatTheLoopDoesBetweenPassesBelongsToTheOneBefore) {
  Program program;
  for (int i = 0; i < 10; ++i) {
    program.Pass(1000, kLoop);
    program.Make(500, kLoop);
    program.Make(516, kLoop);
    program.tokens.back().death = static_cast<Position>(program.tokens.size());
  }
  const auto rule = FindCuts(program.tokens);
  ASSERT_TRUE(rule.has_value());
  EXPECT_EQ(program.CutsBy(*rule), program.begins);
}

TEST(CutSearchTest, WithoutFreesASiteThatComesOnceInAPassBeginsIt) {
  Program program;
  for (int i = 0; i < 10; ++i) program.Pass(1000, Token::kNoFree);
  for (Token& token : program.tokens) token.depth = Token::kNoFree;
  const auto rule = FindCuts(program.tokens);
  ASSERT_TRUE(rule.has_value());
  EXPECT_EQ(program.CutsBy(*rule).size(), program.begins.size()) << "once in each pass";
}

// A pass that is written out in the loop: each site comes in each layer, so only a sequence of sites is good.
TEST(CutSearchTest, ASequenceOfSitesBeginsAPassWhereNoSiteIsItsOwn) {
  Program program;
  for (int i = 0; i < 12; ++i) {
    program.begins.push_back(program.tokens.size());
    for (int k = 0; k < 26; ++k) program.Make(static_cast<Site>(1000 + k % 10), kLoop);
  }
  const auto rule = FindCuts(program.tokens);
  ASSERT_TRUE(rule.has_value());
  EXPECT_TRUE(rule->after_sites);
  EXPECT_GE(program.CutsBy(*rule).size(), program.begins.size() - 1);
  EXPECT_LE(program.CutsBy(*rule).size(), program.begins.size());
}

TEST(CutSearchTest, PassesThatDivergeAreStillAlike) {
  Program program;
  std::mt19937 random(2);
  for (int i = 0; i < 30; ++i) {
    program.Pass(1000, kLoop, 64, 40);
    program.tokens[program.begins.back()] = {.key = {.size = 1024, .site = 1000},  // lives for the whole pass
                                             .depth = kLoop,
                                             .death = static_cast<Position>(program.tokens.size())};
  }
  Program cut = program;
  for (std::size_t i = 0; i < cut.tokens.size(); ++i) {  // something else in two passes of three
    if (cut.tokens[i].depth != kLoop && random() % 40 == 0)
      cut.tokens[i].key.site = static_cast<Site>(5000 + random() % 999);
  }
  const auto rule = FindCuts(cut.tokens);
  ASSERT_TRUE(rule.has_value());
  EXPECT_EQ(rule->level, kLoop);
  EXPECT_EQ(cut.CutsBy(*rule), program.begins);
}

TEST(CutSearchTest, NothingIsFoundWhereNothingRepeats) {
  std::mt19937 random(3);
  Program program;
  for (int i = 0; i < 2000; ++i)
    program.Make(static_cast<Site>(1000 + random() % 500), static_cast<Site>(random() % 400));
  EXPECT_FALSE(FindCuts(program.tokens).has_value());
  EXPECT_FALSE(FindCuts({}).has_value());
}

TEST(CutSearchTest, BuffersThatAllLiveForLongAreWorthNothing) {
  Program program;
  for (int i = 0; i < 10; ++i) program.Pass(1000, kLoop);
  for (Token& token : program.tokens) token.death = PassRecord::kAlive;
  EXPECT_FALSE(FindCuts(program.tokens).has_value());
}

TEST(CutSearchTest, TheRuleInUseStaysWhereNoOtherIsBetter) {
  Program program;
  for (int i = 0; i < 10; ++i) program.Pass(1000, kLoop);
  const CutRule current{.level = kLoop, .after_sites = false, .starts = FindCuts(program.tokens)->starts};
  CutRule wider = current;
  wider.starts.push_back(~std::uint64_t{0});  // of a site that is not seen here
  EXPECT_EQ(FindCuts(program.tokens, wider), wider);
  const CutRule stale{.level = 1, .after_sites = false, .starts = {1}};
  EXPECT_EQ(FindCuts(program.tokens, stale), current);
}

}  // namespace
}  // namespace livepool
