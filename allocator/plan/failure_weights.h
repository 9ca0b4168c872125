// Where the search has failed before, it asks first.
//
// Each failure counts for the section that it showed on; the weight of a section falls with the logarithm of its
// failures. Of two questions with as many answers, the one that is more likely to fail comes first, so that a dead end
// is seen early.
//
// Source: the dom/wdeg heuristic, Boussemart et al., "Boosting systematic search by weighting constraints", 2004.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace livepool {

class FailureWeights {
 public:
  explicit FailureWeights(std::uint32_t sections) : failures_(sections, 1.0), weights_(sections, 1.0) {}

  void Blame(std::uint32_t section) { weights_[section] = 1 / (1 + std::log2(++failures_[section])); }

  // In (0, 1].
  double operator[](std::uint32_t section) const { return weights_[section]; }

 private:
  std::vector<double> failures_;  // by section, from 1
  std::vector<double> weights_;   // 1 / (1 + log2(failures))
};

}  // namespace livepool
