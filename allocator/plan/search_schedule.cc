#include "search_schedule.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "depth_first_search.h"
#include "restarts.h"
#include "search_problem.h"

namespace livepool {
namespace {

constexpr std::int64_t kFirstBudget = 20'000;
constexpr std::int64_t kBudgetGrowth = 4;
constexpr std::size_t kMaxMemo = std::size_t{1} << 20;
// Capacities up to this share of the bound are tight (restarts.h).
constexpr double kTight = 1.01;

// The search leaves buffers at the ceiling: let them sink, lowest first, as far as they go.
std::vector<std::int64_t> Settle(const SearchProblem& problem, std::vector<std::int64_t> offsets) {
  std::vector<std::size_t> from_below(offsets.size());
  std::iota(from_below.begin(), from_below.end(), std::size_t{0});
  std::stable_sort(from_below.begin(), from_below.end(),
                   [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; });
  std::vector<std::int64_t> tops(problem.sections, 0);
  for (const std::size_t i : from_below) {
    const SearchProblem::Item& item = problem.items[i];
    const auto first = tops.begin() + item.begin;
    const auto last = tops.begin() + item.end;
    offsets[i] = *std::max_element(first, last);
    std::fill(first, last, offsets[i] + item.size);
  }
  return offsets;
}

class Schedule {
 public:
  Schedule(const Problem& problem, const Sections& sections, const SearchProblem& units, const SearchTask& task)
      : units_(units),
        task_(task),
        proved_(units.bound),
        // Heights that are no multiple of the unit are of no use.
        best_(units.UnitsIn(task.best_height + units.unit - 1)),
        goal_(std::max(units.bound, units.UnitsIn(task.goal))),
        search_(DepthFirstSearch::Make(units, task.switches, best_, MemoSize(task.max_nodes), task.stop)),
        restarts_(problem, sections, task.switches, task.seed, *search_) {}

  SearchResult Run() {
    for (std::int64_t budget = kFirstBudget; Open(); budget *= kBudgetGrowth) {
      Try(std::max(goal_, proved_), budget);
      Bisect(budget);
      if (units_.bound < goal_ && Open()) Try(proved_, budget);
    }
    result_.nodes = search_->nodes();
    if (proved_ > units_.bound) result_.proved_bound = proved_ * units_.unit;
    return std::move(result_);
  }

 private:
  static std::size_t MemoSize(std::int64_t nodes) {
    return std::min(kMaxMemo, std::bit_ceil(static_cast<std::size_t>(std::max<std::int64_t>(nodes, 1))));
  }

  // There is something to gain, and something left to pay for it.
  bool Open() const { return best_ > std::max(goal_, proved_) && search_->nodes() < task_.max_nodes && !stopped_; }

  void Bisect(std::int64_t budget) {
    std::int64_t low = std::max(goal_, proved_) + 1;
    while (Open() && low < best_) {
      const std::int64_t middle = low + (best_ - low) / 2;
      if (!Try(middle, budget)) low = middle + 1;
    }
  }

  bool Try(std::int64_t capacity, std::int64_t budget) {
    const std::int64_t nodes = std::min(budget, task_.max_nodes - search_->nodes());
    const bool tight = static_cast<double>(capacity) <= kTight * static_cast<double>(units_.bound);
    const SearchOutcome outcome = restarts_.Solve(capacity, nodes, tight);
    if (outcome == SearchOutcome::kExhausted) proved_ = std::max(proved_, capacity + 1);
    if (outcome == SearchOutcome::kStopped && task_.stop && task_.stop()) stopped_ = true;
    if (outcome != SearchOutcome::kSolved) return false;
    Keep(Settle(units_, search_->offsets()));
    return true;
  }

  void Keep(const std::vector<std::int64_t>& offsets) {
    Offsets in_bytes;
    in_bytes.reserve(offsets.size());
    best_ = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      best_ = std::max(best_, offsets[i] + units_.items[i].size);
      in_bytes.push_back(offsets[i] * units_.unit);
    }
    result_.offsets = std::move(in_bytes);
    if (task_.improved) task_.improved(*result_.offsets);
  }

  const SearchProblem& units_;
  const SearchTask& task_;
  std::int64_t proved_;  // in units, as best_ and goal_
  std::int64_t best_;
  std::int64_t goal_;
  bool stopped_ = false;
  std::unique_ptr<DepthFirstSearch> search_;
  Restarts restarts_;
  SearchResult result_;
};

}  // namespace

SearchResult SearchBelow(const Problem& problem, const Sections& sections, const SearchTask& task) {
  const std::optional<SearchProblem> units = MakeSearchProblem(problem, sections);
  if (!units || task.max_nodes <= 0) return {};
  return Schedule(problem, sections, *units, task).Run();
}

}  // namespace livepool
