// Makes plans.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "livepool/plan/plan.h"
#include "livepool/plan/problem.h"

namespace livepool {

// The ideas of the depth-first search (docs/planner.md). None of them changes which heights can be reached; each makes
// the search faster.
struct SearchSwitches {
  bool bound = true;           // prune by what must still lie above each offset
  bool fewest_answers = true;  // ask the section with the fewest answers; else the lowest niche
  bool split = true;           // solve parts that share no buffer one by one
  bool ceiling = true;         // a buffer that overlaps all others goes to the top
  bool twins = true;           // of equal buffers only one is tried
  bool backjump = true;        // leave a question whose answers have no part in the failure
  bool nogoods = true;         // remember why it has failed
  bool restarts = true;        // give up a run soon, and begin anew in another order
  bool weigh_failures = true;  // ask first where the search has failed before, in half of the runs
  bool core = true;            // of a problem that is too large, search what lives around the peak

  friend bool operator==(const SearchSwitches&, const SearchSwitches&) = default;
};

// Each rule can be switched off; at least one must stay on that honours what the problem asks for.
struct PlannerOptions {
  // Problems whose best plan can be read off: all buffers alive at once, or all of one size.
  bool shortcuts = true;
  // Buffers of lowest feasible offset first, in several orders.
  bool skyline = true;
  // Each buffer into the smallest gap that fits, in several orders. Skipped if more than a million pairs of buffers
  // overlap, unless no other rule can run.
  bool offset_best_fit = true;
  // Greedy best fit of whole slots in birth order (livepool's first planner, the baseline in tables).
  // Skipped if a buffer has a fixed offset.
  bool whole_slots = true;

  // Depth-first search below the best plan of the rules, for so many nodes (2 to 20 us each); 0: off. The default costs
  // a few milliseconds for a thousand buffers, and only where no rule reaches the bound. Skipped if a buffer has a
  // fixed offset (docs/planner.md says why) or an alignment that does not divide all sizes. Of more than 4096 buffers,
  // those that live around the peak are searched.
  std::int64_t search_nodes = 500;
  SearchSwitches search;
  std::uint64_t seed = 0;  // of the search

  // Rules that are tried side by side. The plan is the same.
  int threads = 1;

  // A plan of this height is good enough; nothing: only the best is. It is no error to end above it.
  std::optional<Bytes> capacity = std::nullopt;
  // After so many seconds the best plan so far is returned. This is the one option with which plans may differ from run
  // to run. At least one rule runs to its end.
  std::optional<double> time_limit = std::nullopt;

  friend bool operator==(const PlannerOptions&, const PlannerOptions&) = default;
};

// Called with the best plan so far, again and again while a plan is made: after every rule and every few hundred nodes
// of the search. Returns false to stop.
using PlanProgress = std::function<bool(const Plan&)>;

// The best plan that the rules in `options` find; but for the time limit a pure function of problem and options, and
// independent of the order of problem.buffers: ids break every tie. Stops as soon as the plan is proved optimal or
// its height is within options.capacity.
//
// Throws InvalidInput, naming the buffer, if no plan can exist or be computed:
//  - a buffer breaks a rule of problem.h, two share an id, or two fixed ones share bytes while both live;
//  - stacked on each other (with alignment) the buffers would end past 64 bits;
//  - no rule is on, or none of those that are honours fixed offsets where the problem has one.
[[nodiscard]] Plan MakePlan(const Problem& problem, const PlannerOptions& options = {},
                            const PlanProgress& progress = {});

// What others do, for comparison: one rule in one order, and nothing else.
enum class BaselineRule {
  kWholeSlots,      // best fit of whole slots, by birth
  kBestFitByBirth,  // offset best fit, as an online allocator does it
  kBestFitBySize,   // offset best fit, largest first
};
// Throws InvalidInput as MakePlan does, and for whole slots if a buffer has a fixed offset.
[[nodiscard]] Plan MakeBaselinePlan(const Problem& problem, BaselineRule rule);

}  // namespace livepool
