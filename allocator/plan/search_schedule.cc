#include "search_schedule.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "depth_first_search.h"
#include "restarts.h"
#include "search_problem.h"

namespace livepool {
namespace {

// The goal has so many nodes for itself.
constexpr std::int64_t kGoalNodes = 20'000;

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
        search_(DepthFirstSearch::Make(units, task.switches, best_, task.stop)),
        restarts_(problem, sections, task.switches, task.seed, *search_) {}

  SearchResult Run() {
    while (Open()) {
      const bool between = lowest() < best_ && goal_nodes_ >= kGoalNodes + between_nodes_;
      const std::int64_t before = search_->nodes();
      if (between) {
        Try(Between(between_runs_ + 1), between_runs_);
        ++between_runs_;
      } else {
        Try(std::max(goal_, proved_), goal_runs_++);
      }
      (between ? between_nodes_ : goal_nodes_) += search_->nodes() - before;
    }
    result_.nodes = search_->nodes();
    if (proved_ > units_.bound) result_.proved_bound = proved_ * units_.unit;
    return std::move(result_);
  }

 private:
  // There is something to gain, and something left to pay for it.
  bool Open() const { return best_ > std::max(goal_, proved_) && search_->nodes() < task_.max_nodes && !stopped_; }

  // The heights between goal and best plan are [lowest(), best_).
  std::int64_t lowest() const { return std::max(goal_, proved_) + 1; }
  std::int64_t Between(std::int64_t run) const {
    constexpr double kGoldenRatio = 0.6180339887498949;
    const double turns = static_cast<double>(run) * kGoldenRatio;
    const double share = turns - std::floor(turns);
    return lowest() + static_cast<std::int64_t>(share * static_cast<double>(best_ - lowest()));
  }

  void Try(std::int64_t capacity, std::int64_t run) {
    const SearchOutcome outcome = restarts_.Run(capacity, run, task_.max_nodes - search_->nodes());
    if (outcome == SearchOutcome::kExhausted) proved_ = std::max(proved_, capacity + 1);
    if (outcome == SearchOutcome::kStopped && task_.stop && task_.stop()) stopped_ = true;
    if (outcome == SearchOutcome::kSolved) Keep(Settle(units_, search_->offsets()));
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
  std::int64_t goal_runs_ = 0;
  std::int64_t goal_nodes_ = 0;
  std::int64_t between_runs_ = 0;
  std::int64_t between_nodes_ = 0;
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
