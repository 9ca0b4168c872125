// The quick rules, in the sequence in which they are tried.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "livepool/plan/planner.h"
#include "livepool/plan/problem.h"
#include "range_tree.h"
#include "rule.h"
#include "sections.h"

namespace livepool {

struct Rule {
  std::string name;
  bool honours_fixed_offsets;
  std::function<RuleResult(Bytes limit)> run;
};

// Those that `options` leaves on. They refer to `problem`, `sections` and `tree`, which must outlive them. `bound`: no
// plan is lower.
//
// The sequence is part of the result: the first of equally good plans is kept, and no rule is tried once the lower
// bound is reached. What is best on real traces comes first. Offset best fit takes time in proportion to the number
// of buffer pairs that overlap; where they are many it is left out, unless it is the only rule that may run.
[[nodiscard]] std::vector<Rule> Portfolio(const Problem& problem, const Sections& sections, const RangeTree& tree,
                                          Bytes bound, const PlannerOptions& options);

}  // namespace livepool
