// Statistics, figure by figure, under the names that reports and Python give them.
#pragma once

#include "livepool/torch/eager_code.h"

namespace livepool {

// Calls visit(name, value) for each.
template <typename Visit>
void EachFigure(const ScopeStats& stats, const Visit& visit) {
  visit("passes", stats.passes);
  visit("hits", stats.hits);
  visit("misses", stats.misses);
  visit("upstream", stats.upstream);
  visit("divergences", stats.divergences);
  visit("kinds", stats.kinds);
  visit("units", stats.units);
  visit("arena_bytes", stats.arena_bytes);
  visit("lower_bound_bytes", stats.lower_bound_bytes);
  visit("recorded_peak_bytes", stats.recorded_peak_bytes);
}

template <typename Visit>
void EachFigure(const EagerCodeStats& stats, const Visit& visit) {
  visit("active", stats.why_not.empty());
  visit("why_not", stats.why_not);
  visit("threads", stats.threads);
  visit("serving", stats.serving);
  visit("looking", stats.looking);
  visit("asleep", stats.asleep);
  visit("allocations", stats.allocations);
  EachFigure(stats.passes, visit);
}

}  // namespace livepool
