// Many short runs of the depth-first search in place of a long one.
//
// The time that a depth-first search takes is heavy-tailed: a wrong choice near the root costs all the time there is,
// while another order may not make it. So run k gets luby(k) x 1000 nodes (1, 1, 2, 1, 1, 2, 4, ...), which is within a
// logarithmic factor of the best restart strategy without knowing the distribution. The first runs follow plain
// orders; later ones shuffle them a little, each by another amount. What was learned stays, and
// half of the runs ask where earlier ones have failed (failure_weights.h).
//
// Source: Luby, Sinclair and Zuckerman, "Optimal speedup of Las Vegas algorithms", 1993; Gomes, Selman and Kautz,
// "Boosting combinatorial search through randomization", 1998.
#pragma once

#include <cstdint>
#include <random>
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

  // Run `run` (from 0) of a series, for no more than `max_nodes`. Once a packing was found, its order joins the others:
  // one a little lower often resembles it.
  SearchOutcome Run(std::int64_t capacity, std::int64_t run, std::int64_t max_nodes);

  // A series of runs until a packing is found or excluded, or `max_nodes` are used up.
  SearchOutcome Solve(std::int64_t capacity, std::int64_t max_nodes);

 private:
  std::size_t Choices() const { return orders_.size() + (last_solution_.empty() ? 0 : 1); }
  // Of every Choices() runs in a row each follows another order.
  std::vector<double> RanksOf(std::int64_t run);

  SearchSwitches switches_;
  DepthFirstSearch& search_;
  std::mt19937_64 random_;
  std::vector<std::vector<double>> orders_;  // of each order: rank by item
  std::vector<double> last_solution_;        // the same, by offset; empty before the first
};

}  // namespace livepool
