#include "livepool/plan/planner.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check_problem.h"
#include "core_search.h"
#include "fixed_bound.h"
#include "livepool/base/error.h"
#include "livepool/plan/lower_bound.h"
#include "portfolio.h"
#include "range_tree.h"
#include "rule.h"
#include "search_problem.h"
#include "search_schedule.h"
#include "sections.h"
#include "shortcuts.h"

namespace livepool {
namespace {

Bytes Height(const Problem& problem, const Offsets& offsets) {
  Bytes height = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    height = std::max(height, offsets[i] + problem.buffers[i].size);
  }
  return height;
}

// The first buffer (by id) with a fixed offset, for messages.
const Buffer* FirstFixed(const Problem& problem) {
  const Buffer* first = nullptr;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed_offset && (first == nullptr || buffer.id < first->id)) first = &buffer;
  }
  return first;
}

// The best plan so far, and whether it is time to stop.
class Incumbent {
 public:
  Incumbent(const Problem& problem, const PlannerOptions& options, const PlanProgress& progress)
      : problem_(problem), options_(options), progress_(progress), start_(Clock::now()) {
    plan_.lower_bound = LowerBound(problem);
    Prove(FixedBound(problem));
  }

  Bytes limit() const { return found_ ? plan_.height : kNoLimit; }
  bool found() const { return found_; }
  Bytes bound() const { return std::max(plan_.lower_bound, plan_.proved_bound); }
  // Of what is worth finding.
  Bytes goal() const { return std::max(options_.capacity.value_or(0), bound()); }

  void Offer(const Offsets& offsets, const std::string& algorithm) {
    const Bytes height = Height(problem_, offsets);
    if (height >= limit()) return;
    plan_.offsets = offsets;
    plan_.height = height;
    plan_.algorithm = algorithm;
    found_ = true;
  }

  void Prove(Bytes proved) {
    if (proved > bound()) plan_.proved_bound = proved;
  }

  // A plan is there that need not get better, or may not for lack of time.
  bool Done() {
    if (!found_) return false;
    if (plan_.height <= goal()) return true;
    if (!stopped_ && options_.time_limit) stopped_ = Seconds() >= *options_.time_limit;
    if (!stopped_ && progress_) stopped_ = !progress_(plan_);
    return stopped_;
  }

  // Whether something that takes so long would end before the time limit.
  bool TimeFor(double seconds) const {
    return !found_ || !options_.time_limit || Seconds() + seconds <= *options_.time_limit;
  }
  double Seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  Plan Take() { return std::move(plan_); }

 private:
  using Clock = std::chrono::steady_clock;

  const Problem& problem_;
  const PlannerOptions& options_;
  const PlanProgress& progress_;
  const Clock::time_point start_;
  Plan plan_;
  bool found_ = false;
  bool stopped_ = false;
};

// Their plans end at the bound, if they have one.
void TryShortcuts(const Problem& problem, Incumbent& best) {
  if (const RuleResult offsets = Stack(problem)) best.Offer(*offsets, "stack");
  if (best.found()) return;
  if (const RuleResult offsets = ColourIntervals(problem)) best.Offer(*offsets, "interval colouring");
}

// Rules cannot be interrupted: none is begun that, if it takes as long as the longest so far, would end too late.
// Side by side only in batches whose results are taken in sequence, so that threads do not change the plan.
void RunRules(const std::vector<Rule>& rules, const PlannerOptions& options, Incumbent& best) {
  const auto batch = static_cast<std::size_t>(std::max(options.threads, 1));
  double longest = 0;
  for (std::size_t first = 0; first < rules.size() && !best.Done() && best.TimeFor(longest); first += batch) {
    const double start = best.Seconds();
    std::vector<std::future<RuleResult>> others;
    for (std::size_t i = first + 1; i < std::min(first + batch, rules.size()); ++i) {
      others.push_back(std::async(std::launch::async, rules[i].run, best.limit()));
    }
    if (const RuleResult offsets = rules[first].run(best.limit())) best.Offer(*offsets, rules[first].name);
    for (std::size_t i = 0; i < others.size(); ++i) {
      const RuleResult offsets = others[i].get();
      if (offsets && !best.Done()) best.Offer(*offsets, rules[first + 1 + i].name);
    }
    longest = std::max(longest, best.Seconds() - start);
  }
}

void Search(const Problem& problem, const Sections& sections, const RangeTree& tree, const PlannerOptions& options,
            Incumbent& best) {
  const bool core = options.search.core && problem.buffers.size() > kMaxSearchBuffers;
  // The core search ends with a rule that cannot be interrupted: it is not begun if as long as all took would be too
  // much.
  if (core && !best.TimeFor(best.Seconds())) return;
  const std::string name = core ? "depth-first search of the core" : "depth-first search";
  const SearchTask task{.best_height = best.limit(),
                        .goal = best.goal(),
                        .max_nodes = options.search_nodes,
                        .seed = options.seed,
                        .switches = options.search,
                        .improved = [&](const Offsets& offsets) { best.Offer(offsets, name); },
                        .stop = [&] { return best.Done(); }};
  const SearchResult result =
      core ? SearchCore(problem, sections, tree, task, options) : SearchBelow(problem, sections, task);
  best.Prove(result.proved_bound);
}

}  // namespace

Plan MakePlan(const Problem& problem, const PlannerOptions& options, const PlanProgress& progress) {
  if (!options.skyline && !options.offset_best_fit && !options.whole_slots) {
    throw InvalidInput("PlannerOptions: every rule is off; leave at least one on");
  }
  CheckProblem(problem);
  if (problem.buffers.empty()) return {.offsets = {}, .height = 0, .lower_bound = 0, .algorithm = "empty"};

  Incumbent best(problem, options, progress);
  if (options.shortcuts) TryShortcuts(problem, best);
  if (best.Done()) return best.Take();
  const Sections sections = CutIntoSections(problem);
  const RangeTree tree(sections);
  RunRules(Portfolio(problem, sections, tree, best.bound(), options), options, best);
  if (!best.found()) {
    // Without fixed offsets the first rule runs without a limit, and gives a plan. So there is one.
    throw InvalidInput("buffer " + std::to_string(FirstFixed(problem)->id) +
                       ": it has a fixed offset, which whole slots do not honour; turn on PlannerOptions::skyline or "
                       "offset_best_fit");
  }
  if (!best.Done()) Search(problem, sections, tree, options, best);
  return best.Take();
}

}  // namespace livepool
