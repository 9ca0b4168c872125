// How good it would be to cut a window into passes at certain places.
#pragma once

#include <cstddef>
#include <vector>

#include "token_sums.h"

namespace livepool {

using Cuts = std::vector<std::size_t>;  // positions before which is cut, in order

struct Judgement {
  double worth = 0;       // see Worth in cut_search.h
  std::size_t kinds = 0;  // different sequences of sites, but for those that are another one with a gap
};

Judgement Judge(const TokenSums& sums, const Cuts& cuts);

}  // namespace livepool
