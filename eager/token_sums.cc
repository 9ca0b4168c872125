#include "token_sums.h"

#include "livepool/eager/cut_rule.h"

namespace livepool {
namespace {

constexpr std::uint64_t kBase = 0x9E3779B97F4A7C15ULL;

}  // namespace

TokenSums::TokenSums(std::span<const Token> tokens)
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

}  // namespace livepool
