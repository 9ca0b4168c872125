// Depth-first search for a packing below a given height.
//
// A state is a set of unplaced buffers with the least offset of each, on a run of sections that nothing unplaced
// leaves (search_state.h). It is expanded by a question (search_branching.h). Placing a buffer at its least offset
// raises the offsets of all that overlap it to its top; wasting the space up to w on a section raises those of all that
// cross it.
//
// Ideas, each with its switch in SearchSwitches: the bound (search_profile.h), questions with the fewest answers, twins
// (search_branching.h), splitting where nothing crosses (search_parts.h), ceiling, backjumping (search_conflict.h),
// nogoods (nogoods.h), failure weights (failure_weights.h).
//
// The search is complete: without a limit it finds a packing or proves that there is none. It is a function of its
// arguments and of the nogoods and failure counts that earlier runs have left.
// Source: google/minimalloc (canonical solutions, section bounds, dynamic decomposition) for the frame.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "livepool/plan/planner.h"
#include "search_problem.h"

namespace livepool {

enum class SearchOutcome {
  kSolved,
  kExhausted,  // there is no packing of that capacity
  kStopped,    // at the node limit, or by the stop function
};

class DepthFirstSearch {
 public:
  struct Run {
    std::int64_t capacity = 0;          // in units
    std::span<const double> rank = {};  // by item: of several candidates the least is tried first
    std::int64_t max_nodes = 0;
    bool weigh_failures = false;  // ask where the search has failed before (failure_weights.h)
  };

  virtual ~DepthFirstSearch() = default;

  virtual SearchOutcome Search(const Run& run) = 0;
  // After kSolved: by item, in units. Otherwise what the last run left, which need not be a packing.
  virtual const std::vector<std::int64_t>& offsets() const = 0;
  // Nodes of all runs together.
  virtual std::int64_t nodes() const = 0;

  // No run may ask for more than `max_capacity`, which is the lower bound at least. `stop` is asked every few hundred
  // nodes. `problem` must outlive the search.
  static std::unique_ptr<DepthFirstSearch> Make(const SearchProblem& problem, const SearchSwitches& switches,
                                                std::int64_t max_capacity, std::function<bool()> stop = {});

 protected:
  DepthFirstSearch() = default;
  DepthFirstSearch(const DepthFirstSearch&) = delete;
  DepthFirstSearch& operator=(const DepthFirstSearch&) = delete;
};

}  // namespace livepool
