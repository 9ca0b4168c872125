// What the search makes of a failure: it is explained (search_conflict.h), remembered (nogoods.h) and counted
// (failure_weights.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "failure_weights.h"
#include "livepool/plan/planner.h"
#include "nogoods.h"
#include "search_branching.h"
#include "search_conflict.h"
#include "search_problem.h"
#include "search_profile.h"
#include "search_state.h"

namespace livepool {

template <typename Unit>
class SearchFailures {
 public:
  using State = SearchState<Unit>;

  SearchFailures(const SearchProblem& problem, const SearchSwitches& switches)
      : problem_(problem),
        backjump_(switches.backjump),
        learn_(switches.nogoods),
        conflict_(problem.items.size()),
        nogoods_(problem.items.size()),
        weights_(problem.sections) {}

  // Whether conflicts are of use. If not, conflict() and what is said about it below mean nothing.
  bool explained() const { return backjump_ || learn_; }
  // Of the state that has failed last.
  Conflict<Unit>& conflict() { return conflict_; }
  const FailureWeights& weights() const { return weights_; }

  // Whether `state` is known to fail.
  bool Known(const State& state) { return learn_ && nogoods_.Meets(state, conflict_); }

  // The bound has shown that buffer `index` of the list makes the state hopeless (SearchProfile::FindHopeless).
  void OfBound(const State& state, const SearchProfile<Unit>& profile, std::size_t index) {
    const OpenItem<Unit> open = state.open[index];
    const SearchProblem::Item& item = problem_.items[open.item];
    std::uint32_t fullest = item.begin;
    for (std::uint32_t s = item.begin + 1; s < item.end; ++s) {
      if (profile.pending(s) > profile.pending(fullest)) fullest = s;
    }
    weights_.Blame(fullest);
    if (!explained()) return;
    if (item.size > state.capacity - open.offset) {
      conflict_.SetToItem(problem_, state, open.item);
    } else {
      conflict_.SetToSection(problem_, state, fullest, index + 1);
    }
  }

  // All answers have failed; to find out took `nodes`.
  void OfQuestion(const State& state, const Question<Unit>& question, std::int64_t nodes) {
    weights_.Blame(question.section);
    if (learn_ && nodes >= kWorthLearning) nogoods_.Learn(conflict_, state.capacity);
  }

  // After the failure of a child of `state`: the question has no part in it.
  bool BesideTheQuestion(const State& state) const { return backjump_ && conflict_.HoldsIn(state); }

 private:
  static constexpr std::int64_t kWorthLearning = 8;

  const SearchProblem& problem_;
  const bool backjump_;
  const bool learn_;
  Conflict<Unit> conflict_;
  Nogoods<Unit> nogoods_;
  FailureWeights weights_;
};

}  // namespace livepool
