// Looks for passes that repeat.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "livepool/eager/cut_rule.h"
#include "livepool/eager/token_window.h"

namespace livepool {

constexpr std::size_t kMinFoundPass = 12;  // allocations; what is shorter is no pass

// How much of `tokens` a rule would let be planned, from 0 to 1: the mean, over allocations and over bytes, of the
// share that lies in passes which repeat and dies inside its own pass. A pass repeats if its sites come twice, or as
// far as they are those of the commonest pass before a first difference and behind a last one. What is before the first
// cut and behind the last does not count against the rule, up to its longest pass.
double Worth(std::span<const Token> tokens, const CutRule& rule);

// The rule of most worth, or none if that is less than kLeastWorth. Of rules that are nearly as good (kNearly) the one
// with the fewest kinds of pass is taken, of these the one with the shallowest frees: so two models that come in turns
// are two kinds, not one for each sequence of them, and a pass is not cut into layers. `current` stays where no other
// is better in this sense.
//
// Rules that are tried, for each of the shallowest kLevels depths of frees, and without a condition on frees:
//  - all sites at which a long pass begins, so that what the loop does between two passes belongs to the first;
//  - each site, and each sequence of sites, alone.
constexpr double kLeastWorth = 0.25;
constexpr double kNearly = 0.97;
constexpr std::size_t kLevels = 24;
std::optional<CutRule> FindCuts(std::span<const Token> tokens, const std::optional<CutRule>& current = {});

}  // namespace livepool
