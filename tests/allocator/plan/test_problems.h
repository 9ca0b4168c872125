// Problems for the tests of this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "livepool/plan/plan.h"
#include "livepool/plan/problem.h"

namespace livepool::testing {

struct NamedProblem {
  std::string name;  // a GoogleTest parameter name: letters and digits
  Problem problem;
};

// Small problems made by hand, one for each thing that can be awkward about a problem.
const std::vector<NamedProblem>& HandMadeProblems();

// The hand-made problem of that name. Throws std::out_of_range.
const Problem& HandMade(const std::string& name);

struct RandomShape {
  std::size_t buffers = 30;
  Time times = 20;  // births are below it
  Bytes max_size = 64;
  bool alignments = false;
  bool fixed_offsets = false;  // about every fourth buffer, never two in conflict
};

// The same for the same arguments on every platform. Ids are neither dense nor in order.
Problem RandomProblem(std::uint64_t seed, const RandomShape& shape);

// Height and bound of offsets that were written down by hand.
Plan PlanOf(const Problem& problem, std::vector<Bytes> offsets);

}  // namespace livepool::testing
