#include "depth_first_search.h"

#include <limits>
#include <utility>

#include "bump_arena.h"
#include "search_branching.h"
#include "search_conflict.h"
#include "search_failures.h"
#include "search_parts.h"
#include "search_profile.h"
#include "search_state.h"

namespace livepool {
namespace {

template <typename Unit>
class SearchInUnits final : public DepthFirstSearch {
 public:
  SearchInUnits(const SearchProblem& problem, const SearchSwitches& switches, std::function<bool()> stop)
      : problem_(problem),
        switches_(switches),
        stop_(std::move(stop)),
        profile_(problem),
        crossings_(problem),
        failures_(problem, switches),
        offsets_(problem.items.size()) {}

  SearchOutcome Search(const Run& run) override {
    rank_ = run.rank;
    weigh_failures_ = run.weigh_failures;
    node_limit_ = nodes_ + run.max_nodes;
    const BumpArena::Scope scope(arena_);
    return Simplify(RootState(problem_, static_cast<Unit>(run.capacity), arena_));
  }

  const std::vector<std::int64_t>& offsets() const override { return offsets_; }
  std::int64_t nodes() const override { return nodes_; }

 private:
  using State = SearchState<Unit>;

  // All functions here: after kExhausted, failures_.conflict() is one of the state.

  // What need not be asked: ceiling and splitting. Changes the list of `state`.
  SearchOutcome Simplify(State state) {
    if (switches_.ceiling) {
      for (std::size_t i = 0; i < state.count; ++i) {
        const SearchProblem::Item& item = problem_.items[state.open[i].item];
        if (item.begin == state.begin && item.end == state.end) return PlaceAtCeiling(state, i);
      }
    }
    if (state.count == 0) return SearchOutcome::kSolved;
    if (switches_.split && crossings_.NextFree(state.begin, state.end) != state.end) return SolveParts(state);
    return Expand(state);
  }

  // A buffer on all sections of the state overlaps every other one. In any packing, what is above it can be moved
  // down by its size, and it to the top: its own offset is the largest of the list, so nothing sinks too low.
  SearchOutcome PlaceAtCeiling(State state, std::size_t index) {
    const OpenItem<Unit> open = state.open[index];
    const SearchProblem::Item& item = problem_.items[open.item];
    if (item.size > state.capacity - open.offset) {
      if (failures_.explained()) failures_.conflict().SetToItem(problem_, state, open.item);
      return SearchOutcome::kExhausted;
    }
    state.capacity = static_cast<Unit>(state.capacity - item.size);
    offsets_[open.item] = state.capacity;
    std::copy(state.open + index + 1, state.open + state.count, state.open + index);
    --state.count;
    crossings_.Placed(item);
    const SearchOutcome outcome = Simplify(state);
    crossings_.Unplaced(item);
    if (outcome == SearchOutcome::kExhausted && failures_.explained()) failures_.conflict().AddCeiling(open.item);
    return outcome;
  }

  SearchOutcome SolveParts(const State& state) {
    const BumpArena::Scope scope(arena_);
    for (const State& part : SplitIntoParts(problem_, state, crossings_, arena_)) {
      const SearchOutcome outcome = Simplify(part);
      if (outcome != SearchOutcome::kSolved) return outcome;
    }
    return SearchOutcome::kSolved;
  }

  SearchOutcome Expand(const State& state) {
    if (OutOfNodes(state)) return SearchOutcome::kStopped;
    const std::int64_t first_node = nodes_++;
    if (const auto hopeless = profile_.FindHopeless(state, switches_.bound)) {
      failures_.OfBound(state, profile_, *hopeless);
      return SearchOutcome::kExhausted;
    }
    if (failures_.Known(state)) return SearchOutcome::kExhausted;
    profile_.Read(state);
    const Question<Unit> question = Ask(profile_, state,
                                        {.fewest_answers = switches_.fewest_answers,
                                         .bound = switches_.bound,
                                         .weights = weigh_failures_ ? &failures_.weights() : nullptr});
    const SearchOutcome outcome = TryAnswers(state, question);
    if (outcome == SearchOutcome::kExhausted) failures_.OfQuestion(state, question, nodes_ - first_node);
    return outcome;
  }

  SearchOutcome TryAnswers(const State& state, const Question<Unit>& question) {
    const BumpArena::Scope scope(arena_);
    Refutation<Unit> refutation(problem_, state, question, arena_);
    for (const std::uint16_t index : Candidates(problem_, state, question, rank_, switches_.twins, arena_)) {
      const SearchOutcome outcome = Place(state, index);
      if (outcome != SearchOutcome::kExhausted || failures_.BesideTheQuestion(state)) return outcome;
      if (failures_.explained()) refutation.AddPlaced(state.open[index].item, failures_.conflict());
    }
    const SearchOutcome outcome = Waste(state, question);
    if (outcome != SearchOutcome::kExhausted || failures_.BesideTheQuestion(state)) return outcome;
    if (failures_.explained()) refutation.AddWasteAndFinish(failures_.conflict());
    return SearchOutcome::kExhausted;
  }

  SearchOutcome Place(const State& state, std::uint16_t index) {
    const BumpArena::Scope scope(arena_);
    const OpenItem<Unit> open = state.open[index];
    const SearchProblem::Item& item = problem_.items[open.item];
    offsets_[open.item] = open.offset;
    const auto top = static_cast<Unit>(open.offset + item.size);
    crossings_.Placed(item);
    const SearchOutcome outcome = Simplify(Lift(problem_, state, item.begin, item.end, top, index, arena_));
    crossings_.Unplaced(item);
    return outcome;
  }

  SearchOutcome Waste(const State& state, const Question<Unit>& question) {
    const std::uint32_t s = question.section;
    if (!question.may_waste) {
      if (failures_.explained()) failures_.conflict().SetToSection(problem_, state, s, state.count);
      return SearchOutcome::kExhausted;
    }
    const BumpArena::Scope scope(arena_);
    return Simplify(Lift(problem_, state, s, s + 1, question.waste_to, state.count, arena_));
  }

  bool OutOfNodes(const State& state) {
    if (nodes_ >= node_limit_) return true;
    read_ += state.count;
    if (read_ >= kReadPerStop) {
      read_ = 0;
      stopped_ = stopped_ || (stop_ && stop_());
    }
    return stopped_;
  }

  // stop_ is asked after so many list entries: every few hundred nodes for a few hundred buffers.
  static constexpr std::size_t kReadPerStop = std::size_t{1} << 16;

  const SearchProblem& problem_;
  const SearchSwitches switches_;
  const std::function<bool()> stop_;
  bool stopped_ = false;
  std::size_t read_ = 0;  // list entries since stop_ was asked

  SearchProfile<Unit> profile_;  // of the state that is being expanded; its children overwrite it
  Crossings crossings_;
  SearchFailures<Unit> failures_;
  BumpArena arena_;

  std::span<const double> rank_;
  bool weigh_failures_ = false;
  std::int64_t nodes_ = 0;
  std::int64_t node_limit_ = 0;
  std::vector<std::int64_t> offsets_;
};

}  // namespace

std::unique_ptr<DepthFirstSearch> DepthFirstSearch::Make(const SearchProblem& problem, const SearchSwitches& switches,
                                                         std::int64_t max_capacity, std::function<bool()> stop) {
  // Sums of two numbers up to the capacity must fit.
  if (max_capacity <= std::numeric_limits<std::int16_t>::max() / 2) {
    return std::make_unique<SearchInUnits<std::int16_t>>(problem, switches, std::move(stop));
  }
  if (max_capacity <= std::numeric_limits<std::int32_t>::max() / 2) {
    return std::make_unique<SearchInUnits<std::int32_t>>(problem, switches, std::move(stop));
  }
  return std::make_unique<SearchInUnits<std::int64_t>>(problem, switches, std::move(stop));
}

}  // namespace livepool
