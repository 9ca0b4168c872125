// Many short runs of the depth-first search in place of a long one.
//
// The time that a depth-first search takes is heavy-tailed: a wrong choice near the root costs all the time there is,
// while another order may not make it. So run k gets luby(k) x 1000 nodes (1, 1, 2, 1, 1, 2, 4, ...), which is within a
// logarithmic factor of the best restart strategy without knowing the distribution. The first runs follow plain
// orders; later ones shuffle them a little, each by another amount. The memo and the failure counts stay.
//
// Source: Luby, Sinclair and Zuckerman, "Optimal speedup of Las Vegas algorithms", 1993; Gomes, Selman and Kautz,
// "Boosting combinatorial search through randomization", 1998.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "depth_first_search.h"
#include "livepool/plan/problem.h"
#include "sections.h"

namespace livepool {

// 1, 1, 2, 1, 1, 2, 4, 1, ... for k = 1, 2, 3, ...
[[nodiscard]] std::int64_t Luby(std::int64_t k);

class Restarts {
 public:
  // `search` must outlive this object.
  Restarts(const Problem& problem, const Sections& sections, const SearchSwitches& switches, std::uint64_t seed,
           DepthFirstSearch& search);

  // Runs until a packing is found or excluded, or `max_nodes` are used up. Once a packing was found, its order joins
  // the others: one a little lower often resembles it.
  // `tight`: the capacity is at or near the bound. Then failures are weighed in every second run.
  SearchOutcome Solve(std::int64_t capacity, std::int64_t max_nodes, bool tight);

 private:
  // The ranks of run `run` at one capacity.
  std::vector<double> RanksOf(std::int64_t run, bool plain);

  SearchSwitches switches_;
  DepthFirstSearch& search_;
  std::mt19937_64 random_;
  std::vector<std::vector<double>> orders_;  // of each order: rank by item
  std::vector<double> last_solution_;        // the same, by offset; empty before the first
  std::set<std::int64_t> tried_;             // capacities at which the plain orders have failed
};

}  // namespace livepool
