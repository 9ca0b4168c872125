#include "livepool/eager/cut_search.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cut_worth.h"
#include "token_sums.h"

namespace livepool {
namespace {

Cuts CutsOf(const TokenSums& sums, std::span<const Token> tokens, const CutRule& rule) {
  Cuts cuts;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].depth <= rule.level &&
        std::binary_search(rule.starts.begin(), rule.starts.end(), sums.Start(i, rule.after_sites))) {
      cuts.push_back(i);
    }
  }
  return cuts;
}

struct Candidate {
  CutRule rule;
  Judgement judgement;

  // Of two that are worth nearly the same.
  bool BetterThan(const Candidate& other) const {
    return std::pair(judgement.kinds, rule.level) < std::pair(other.judgement.kinds, other.rule.level);
  }
};

// The rules for one level, whose cuts are `cuts` if nothing else is asked for.
class LevelSearch {
 public:
  LevelSearch(const TokenSums& sums, std::span<const Token> tokens, Site level, std::vector<Candidate>& candidates)
      : sums_(sums), tokens_(tokens), level_(level), candidates_(candidates) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].depth <= level) cuts_.push_back(i);
    }
  }

  void TryStartsOfLongPasses() {
    CutRule rule{.level = level_, .after_sites = false, .starts = {}};
    for (std::size_t i = 0; i + 1 < cuts_.size(); ++i) {
      if (cuts_[i + 1] - cuts_[i] >= kMinFoundPass) rule.starts.push_back(sums_.Start(cuts_[i], false));
    }
    std::sort(rule.starts.begin(), rule.starts.end());
    rule.starts.erase(std::unique(rule.starts.begin(), rule.starts.end()), rule.starts.end());
    const Cuts cuts = CutsOf(sums_, tokens_, rule);
    Try(std::move(rule), cuts);
  }

  void TryEachStart(bool after_sites) {
    std::unordered_map<std::uint64_t, Cuts> by_start;
    for (const std::size_t cut : cuts_) by_start[sums_.Start(cut, after_sites)].push_back(cut);
    const std::size_t most = sums_.size() / kMinFoundPass;
    std::map<std::size_t, std::pair<std::uint64_t, const Cuts*>> in_order;  // by the first cut: deterministic
    for (const auto& [start, cuts] : by_start) {
      if (cuts.size() > 2 && cuts.size() <= most) in_order[cuts.front()] = {start, &cuts};
    }
    for (const auto& [first, each] : in_order) {
      Try({.level = level_, .after_sites = after_sites, .starts = {each.first}}, *each.second);
    }
  }

 private:
  void Try(CutRule rule, const Cuts& cuts) {
    const Judgement judgement = Judge(sums_, cuts);
    if (judgement.worth >= kLeastWorth) candidates_.push_back({.rule = std::move(rule), .judgement = judgement});
  }

  const TokenSums& sums_;
  const std::span<const Token> tokens_;
  const Site level_;
  std::vector<Candidate>& candidates_;
  Cuts cuts_;
};

// The shallowest depths that come more than once, and "no free is needed".
std::vector<Site> Levels(std::span<const Token> tokens) {
  std::map<Site, int> times;
  for (const Token& token : tokens) {
    if (token.depth != Token::kNoFree) ++times[token.depth];
  }
  std::vector<Site> levels;
  for (const auto& [depth, count] : times) {
    if (count > 1 && levels.size() < kLevels) levels.push_back(depth);
  }
  levels.push_back(Token::kNoFree);
  return levels;
}

}  // namespace

double Worth(std::span<const Token> tokens, const CutRule& rule) {
  const TokenSums sums(tokens);
  return Judge(sums, CutsOf(sums, tokens, rule)).worth;
}

std::optional<CutRule> FindCuts(std::span<const Token> tokens, const std::optional<CutRule>& current) {
  const TokenSums sums(tokens);
  std::vector<Candidate> candidates;
  if (current) candidates.push_back({.rule = *current, .judgement = Judge(sums, CutsOf(sums, tokens, *current))});
  for (const Site level : Levels(tokens)) {
    LevelSearch search(sums, tokens, level, candidates);
    if (level != Token::kNoFree) search.TryStartsOfLongPasses();
    search.TryEachStart(/*after_sites=*/false);
    search.TryEachStart(/*after_sites=*/true);
  }
  double most = kLeastWorth / kNearly;
  for (const Candidate& each : candidates) most = std::max(most, each.judgement.worth);
  const Candidate* best = nullptr;
  for (const Candidate& each : candidates) {
    if (each.judgement.worth < kNearly * most) continue;
    if (best == nullptr || each.BetterThan(*best)) best = &each;
  }
  return best == nullptr ? std::nullopt : std::optional(best->rule);
}

}  // namespace livepool
