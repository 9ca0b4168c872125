#include "depth_first_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "bump_arena.h"
#include "failed_states.h"
#include "search_branching.h"
#include "search_profile.h"

namespace livepool {
namespace {

template <typename Unit>
class SearchInUnits final : public DepthFirstSearch {
 public:
  SearchInUnits(const SearchProblem& problem, const SearchSwitches& switches, std::size_t memo_size,
                std::function<bool()> stop)
      : problem_(problem),
        switches_(switches),
        stop_(std::move(stop)),
        profile_(problem),
        hash_(problem.items.size(), problem.sections),
        failed_(switches.memo ? memo_size : 1),
        crossing_(problem.sections + std::size_t{1}),
        failures_(problem.sections, 1.0),
        weights_(problem.sections, 1.0),
        offsets_(problem.items.size()) {
    for (const SearchProblem::Item& item : problem.items) Cross(item, 1);
  }

  SearchOutcome Search(const Run& run) override {
    rank_ = run.rank;
    node_limit_ = nodes_ + run.max_nodes;
    weigh_failures_ = run.weigh_failures;
    const BumpArena::Scope scope(arena_);
    State root{0, problem_.sections, static_cast<Unit>(run.capacity), arena_.Take<Open>(problem_.items.size()), 0};
    for (; root.count < problem_.items.size(); ++root.count) {
      root.open[root.count] = {0, static_cast<std::uint16_t>(root.count), false};
    }
    return Simplify(root);
  }

  const std::vector<std::int64_t>& offsets() const override { return offsets_; }
  std::int64_t nodes() const override { return nodes_; }

 private:
  using Open = OpenItem<Unit>;

  struct State {
    std::uint32_t begin = 0;  // sections [begin, end); no unplaced buffer crosses either side
    std::uint32_t end = 0;
    Unit capacity = 0;
    Open* open = nullptr;  // offsets descend
    std::size_t count = 0;

    std::span<const Open> list() const { return {open, count}; }
  };

  const SearchProblem::Item& Item(const Open& open) const { return problem_.items[open.item]; }

  // Boundary b is between sections b - 1 and b; crossing_[b] counts the unplaced buffers across it.
  void Cross(const SearchProblem::Item& item, std::int32_t change) {
    for (std::uint32_t b = item.begin + 1; b < item.end; ++b) crossing_[b] += change;
  }

  // What need not be asked: ceiling and splitting. Changes the list of `state`.
  SearchOutcome Simplify(State state) {
    if (switches_.ceiling) {
      for (std::size_t i = 0; i < state.count; ++i) {
        const SearchProblem::Item& item = Item(state.open[i]);
        if (item.begin == state.begin && item.end == state.end) return PlaceAtCeiling(state, i);
      }
    }
    if (state.count == 0) return SearchOutcome::kSolved;
    if (switches_.split) {
      for (std::uint32_t b = state.begin + 1; b < state.end; ++b) {
        if (crossing_[b] == 0) return SolveParts(state);
      }
    }
    return Expand(state);
  }

  // A buffer on all sections of the state overlaps every other one. In any packing, what is above it can be moved
  // down by its size, and it to the top: its own offset is the largest of the list, so nothing sinks too low.
  SearchOutcome PlaceAtCeiling(State state, std::size_t index) {
    const std::uint16_t item_index = state.open[index].item;
    const SearchProblem::Item& item = problem_.items[item_index];
    if (item.size > state.capacity - state.open[index].offset) {
      Blame(state.begin);
      return SearchOutcome::kExhausted;
    }
    state.capacity = static_cast<Unit>(state.capacity - item.size);
    offsets_[item_index] = state.capacity;
    std::copy(state.open + index + 1, state.open + state.count, state.open + index);
    --state.count;
    Cross(item, -1);
    const SearchOutcome outcome = Simplify(state);
    Cross(item, 1);
    return outcome;
  }

  // Parts that share no buffer have nothing to do with each other. The smallest first: it may fail soon.
  SearchOutcome SolveParts(const State& state) {
    const BumpArena::Scope scope(arena_);
    State* const parts = arena_.Take<State>(state.end - state.begin);
    std::size_t part_count = 0;
    Open* const lists = arena_.Take<Open>(state.count);
    std::size_t used = 0;
    for (std::uint32_t begin = state.begin; begin < state.end;) {
      std::uint32_t end = begin + 1;
      while (end < state.end && crossing_[end] != 0) ++end;
      State part{begin, end, state.capacity, lists + used, 0};
      for (const Open& open : state.list()) {
        if (Item(open).begin >= begin && Item(open).end <= end) part.open[part.count++] = open;
      }
      used += part.count;
      if (part.count > 0) parts[part_count++] = part;
      begin = end;
    }
    std::stable_sort(parts, parts + part_count, [](const State& a, const State& b) { return a.count < b.count; });
    for (std::size_t i = 0; i < part_count; ++i) {
      const SearchOutcome outcome = Simplify(parts[i]);
      if (outcome != SearchOutcome::kSolved) return outcome;
    }
    return SearchOutcome::kSolved;
  }

  SearchOutcome Expand(const State& state) {
    if (Exhausted()) return SearchOutcome::kStopped;
    ++nodes_;
    if (!profile_.Read(state.list(), state.begin, state.end, state.capacity, switches_.bound)) {
      Blame(profile_.failed_section());
      return SearchOutcome::kExhausted;
    }
    const StateKey key = switches_.memo ? KeyOf(state) : StateKey{};
    if (switches_.memo && failed_.Contains(key)) return SearchOutcome::kExhausted;
    const Question<Unit> question =
        Ask(profile_, state.begin, state.end, state.capacity,
            {.fewest_answers = switches_.fewest_answers,
             .bound = switches_.bound,
             .weights = weigh_failures_ ? std::span<const double>(weights_) : std::span<const double>()});
    const SearchOutcome outcome = TryAnswers(state, question);
    if (outcome == SearchOutcome::kExhausted) {
      Blame(question.section);
      if (switches_.memo) failed_.Insert(key);
    }
    return outcome;
  }

  SearchOutcome TryAnswers(const State& state, const Question<Unit>& question) {
    const BumpArena::Scope scope(arena_);
    const std::span<const std::uint16_t> candidates = Candidates(state, question);
    for (const std::uint16_t index : candidates) {
      const SearchOutcome outcome = Place(state, index);
      if (outcome != SearchOutcome::kExhausted) return outcome;
    }
    return question.may_waste ? Waste(state, question) : SearchOutcome::kExhausted;
  }

  // Indices in the list of `state`, best rank first. Of twins (one range, one size, one offset) only the first is
  // taken: they could change places.
  std::span<const std::uint16_t> Candidates(const State& state, const Question<Unit>& question) {
    auto* const found = arena_.Take<std::uint16_t>(static_cast<std::size_t>(question.answers) + 1);
    std::size_t count = 0;
    for (std::size_t i = state.count; i-- > 0 && state.open[i].offset <= question.level;) {
      const Open& open = state.open[i];
      const SearchProblem::Item& item = Item(open);
      if (open.raised || open.offset != question.level || question.section < item.begin || question.section >= item.end)
        continue;
      const bool twin = switches_.twins && std::any_of(found, found + count, [&](std::uint16_t other) {
                          const SearchProblem::Item& o = Item(state.open[other]);
                          return o.begin == item.begin && o.end == item.end && o.size == item.size;
                        });
      if (!twin) found[count++] = static_cast<std::uint16_t>(i);
    }
    std::sort(found, found + count, [&](std::uint16_t a, std::uint16_t b) {
      const std::uint16_t x = state.open[a].item;
      const std::uint16_t y = state.open[b].item;
      return rank_[x] != rank_[y] ? rank_[x] < rank_[y] : x < y;
    });
    return {found, count};
  }

  SearchOutcome Place(const State& state, std::uint16_t index) {
    const BumpArena::Scope scope(arena_);
    const Open placed = state.open[index];
    const SearchProblem::Item& item = Item(placed);
    offsets_[placed.item] = placed.offset;
    const State next = Lift(state, {item.begin, item.end}, static_cast<Unit>(placed.offset + item.size), false, index);
    Cross(item, -1);
    const SearchOutcome outcome = Simplify(next);
    Cross(item, 1);
    return outcome;
  }

  SearchOutcome Waste(const State& state, const Question<Unit>& question) {
    const BumpArena::Scope scope(arena_);
    return Simplify(Lift(state, {question.section, question.section + 1}, question.waste_to, true, state.count));
  }

  // The state in which every buffer on `range` lies at `level` at least, without the one at `left_out`. Those that
  // rest at `level` from now on stand in the list as one block, between the higher and the lower ones.
  State Lift(const State& state, std::pair<std::uint32_t, std::uint32_t> range, Unit level, bool raised,
             std::size_t left_out) {
    State next{state.begin, state.end, state.capacity, arena_.Take<Open>(state.count), 0};
    // A buffer that is at `level` already gets a real support, if there is one now.
    const auto lifted = [&](const Open& open) {
      const SearchProblem::Item& item = Item(open);
      return item.begin < range.second && range.first < item.end && (!raised || open.offset < level);
    };
    std::size_t i = 0;
    for (; i < state.count && state.open[i].offset > level; ++i) next.open[next.count++] = state.open[i];
    for (std::size_t j = i; j < state.count; ++j) {
      if (j != left_out && lifted(state.open[j])) next.open[next.count++] = {level, state.open[j].item, raised};
    }
    for (std::size_t j = i; j < state.count; ++j) {
      if (j != left_out && !lifted(state.open[j])) next.open[next.count++] = state.open[j];
    }
    return next;
  }

  StateKey KeyOf(const State& state) const {
    StateKey key;
    for (const Open& open : state.list()) hash_.AddItem(key, open.item, open.raised);
    for (std::uint32_t s = state.begin; s < state.end; ++s) {
      if (profile_.level(s) != SearchProfile<Unit>::kNone) {
        hash_.AddSection(key, s, std::int64_t{state.capacity} - profile_.level(s));
      }
    }
    return key;
  }

  void Blame(std::uint32_t section) { weights_[section] = 1 / (1 + std::log2(++failures_[section])); }

  bool Exhausted() {
    if (nodes_ >= node_limit_) return true;
    if (nodes_ % 256 == 255 && stop_ && stop_()) stopped_ = true;
    return stopped_;
  }

  const SearchProblem& problem_;
  const SearchSwitches switches_;
  const std::function<bool()> stop_;
  bool stopped_ = false;

  SearchProfile<Unit> profile_;  // of the state that is being expanded; its children overwrite it
  StateHash hash_;
  FailedStates failed_;
  std::vector<std::int32_t> crossing_;
  std::vector<double> failures_;  // by section, from 1
  std::vector<double> weights_;   // by section: 1 / (1 + log2(failures))
  BumpArena arena_;

  std::span<const double> rank_;
  bool weigh_failures_ = false;
  std::int64_t nodes_ = 0;
  std::int64_t node_limit_ = 0;
  std::vector<std::int64_t> offsets_;
};

}  // namespace

std::unique_ptr<DepthFirstSearch> DepthFirstSearch::Make(const SearchProblem& problem, const SearchSwitches& switches,
                                                         std::int64_t max_capacity, std::size_t memo_size,
                                                         std::function<bool()> stop) {
  // Sums of two numbers up to the capacity must fit.
  if (max_capacity <= std::numeric_limits<std::int16_t>::max() / 2) {
    return std::make_unique<SearchInUnits<std::int16_t>>(problem, switches, memo_size, std::move(stop));
  }
  if (max_capacity <= std::numeric_limits<std::int32_t>::max() / 2) {
    return std::make_unique<SearchInUnits<std::int32_t>>(problem, switches, memo_size, std::move(stop));
  }
  return std::make_unique<SearchInUnits<std::int64_t>>(problem, switches, memo_size, std::move(stop));
}

}  // namespace livepool
