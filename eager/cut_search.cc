#include "livepool/eager/cut_search.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "livepool/eager/scope_plans.h"

namespace livepool {
namespace {

constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15ULL;
constexpr double kAlike = 0.5;  // a pass is the commonest one, with a gap, if that much of it is equal

// Allocations and bytes.
struct Amount {
  double allocations = 0, bytes = 0;

  Amount& operator+=(const Amount& other) {
    allocations += other.allocations;
    bytes += other.bytes;
    return *this;
  }
  friend Amount operator-(const Amount& a, const Amount& b) {
    return {a.allocations - b.allocations, a.bytes - b.bytes};
  }
};

// Sums over the tokens before each position, so that any range is judged at once.
class Sums {
 public:
  explicit Sums(std::span<const Token> tokens)
      : hashes_(tokens.size() + 1),
        powers_(tokens.size() + 1, 1),
        all_(tokens.size() + 1),
        dying_(tokens.size() + 1),
        crossing_(tokens.size() + 2),
        last_(tokens.size()),
        sequences_(tokens.size()) {
    SiteContext context;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const Token& token = tokens[i];
      context.Add(token.key.site);
      last_[i] = context.Last();
      sequences_[i] = context.All();
      hashes_[i + 1] = hashes_[i] * kBase + last_[i];
      powers_[i + 1] = powers_[i] * kBase;
      const Amount one{1, static_cast<double>(token.key.size)};
      all_[i + 1] = all_[i];
      all_[i + 1] += one;
      dying_[i + 1] = dying_[i];
      if (token.death == PassRecord::kAlive) continue;
      dying_[i + 1] += one;
      crossing_[i + 1] += one;
      crossing_[token.death] += Amount{} - one;
    }
    for (std::size_t i = 1; i < crossing_.size(); ++i) crossing_[i] += crossing_[i - 1];
  }

  std::size_t size() const { return last_.size(); }
  // Of the sites in [begin, end).
  std::uint64_t Hash(std::size_t begin, std::size_t end) const {
    return hashes_[end] - hashes_[begin] * powers_[end - begin];
  }
  Amount All(std::size_t begin, std::size_t end) const { return all_[end] - all_[begin]; }
  // What is born in [begin, end) and dies before `end`, at least: all that lives across `end` is subtracted.
  Amount DyingInside(std::size_t begin, std::size_t end) const {
    const Amount inside = dying_[end] - dying_[begin] - crossing_[end];
    return {std::max(inside.allocations, 0.0), std::max(inside.bytes, 0.0)};
  }
  std::uint64_t Start(std::size_t i, bool after_sites) const { return after_sites ? sequences_[i] : last_[i]; }

 private:
  std::vector<std::uint64_t> hashes_, powers_;
  std::vector<Amount> all_, dying_, crossing_;  // crossing_[i]: born before i, freed after i was allocated
  std::vector<std::uint64_t> last_, sequences_;
};

using Cuts = std::vector<std::size_t>;  // positions before which is cut, in order

struct Judgement {
  double worth = 0;
  std::size_t kinds = 0;  // different sequences of sites, but for those that are another one with a gap
};

struct Range {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

// How far `equal`(n) is true, which is so up to some n <= most.
template <typename Equal>
std::size_t Common(std::size_t most, const Equal& equal) {
  std::size_t low = 0;
  while (low < most) {
    const std::size_t middle = (low + most + 1) / 2;
    equal(middle) ? low = middle : most = middle - 1;
  }
  return low;
}

// The share of `pass` that is as in `model`, from its begin to a first difference and from a last one to its end.
double Alike(const Sums& sums, const Range& pass, const Range& model) {
  const std::size_t most = std::min(pass.size(), model.size());
  const std::size_t front = Common(most, [&](std::size_t n) {
    return sums.Hash(pass.begin, pass.begin + n) == sums.Hash(model.begin, model.begin + n);
  });
  const std::size_t back = Common(most - front, [&](std::size_t n) {
    return sums.Hash(pass.end - n, pass.end) == sums.Hash(model.end - n, model.end);
  });
  return static_cast<double>(front + back) / static_cast<double>(pass.size());
}

Judgement Judge(const Sums& sums, const Cuts& cuts) {
  if (cuts.size() < 3) return {};
  std::vector<Range> passes;
  std::unordered_map<std::uint64_t, std::size_t> times;
  std::size_t longest = 0;
  const Range* commonest = nullptr;
  std::size_t most = 0;
  passes.reserve(cuts.size());
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const Range pass{cuts[i], cuts[i + 1]};
    if (pass.size() < kMinFoundPass || pass.size() > ScopePlans::kMaxPassLength) continue;
    longest = std::max(longest, pass.size());
    passes.push_back(pass);
    const std::size_t now = ++times[sums.Hash(pass.begin, pass.end)];
    if (now <= most) continue;
    most = now;
    commonest = &passes.back();
  }
  Amount good;
  std::size_t kinds = 0;
  for (const auto& [hash, count] : times) kinds += count > 1 ? 1 : 0;
  for (const Range& pass : passes) {
    double share = 1;
    if (times[sums.Hash(pass.begin, pass.end)] == 1) {
      share = commonest == &pass ? 0 : Alike(sums, pass, *commonest);
      if (share < kAlike) ++kinds;
      if (share < kAlike) continue;
    }
    const Amount dying = sums.DyingInside(pass.begin, pass.end);
    good += {share * dying.allocations, share * dying.bytes};
  }
  if (good.allocations == 0) return {};
  const std::size_t begin = std::min(cuts.front(), longest);
  const std::size_t end = sums.size() - std::min(sums.size() - cuts.back(), longest);
  const Amount all = sums.All(begin, end);
  return {.worth = (good.allocations / all.allocations + good.bytes / std::max(all.bytes, 1.0)) / 2, .kinds = kinds};
}

Cuts CutsOf(const Sums& sums, std::span<const Token> tokens, const CutRule& rule) {
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
  LevelSearch(const Sums& sums, std::span<const Token> tokens, Site level, std::vector<Candidate>& candidates)
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

  const Sums& sums_;
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
  const Sums sums(tokens);
  return Judge(sums, CutsOf(sums, tokens, rule)).worth;
}

std::optional<CutRule> FindCuts(std::span<const Token> tokens, const std::optional<CutRule>& current) {
  const Sums sums(tokens);
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
