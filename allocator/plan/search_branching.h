// Which question the depth-first search asks next.
//
// A niche is a maximal run of sections at one level whose neighbours are higher (or have nothing unplaced).
//
//     level 3 |----+         +-----      Sections [4, 7) are a niche at level 1. A buffer that can lie at 1 lies
//           2 |    |     +---+           inside it: its range cannot reach a section with a higher level. Sections
//           1 |    +-----+               [7, 9) are none: the left neighbour is lower.
//             +----4-----7---9---> sections
//
// For a section s of a niche at level m exactly one of these is true of every solution that is settled (each buffer
// rests on the floor or on another one):
//     some unplaced buffer covers s at offset m      one branch for each candidate: offset m, on s;
//     nothing does, and [m, w) on s is wasted        one branch, where
//         w = min(next larger offset on s, least offset + size over the niche).
// In the second case the lowest buffer on s lies higher than m. Either its offset had to be larger anyway, or it rests
// on a buffer that is still unplaced; that one shares a section of the niche with it, and ends at w at least.
// So the branches are complete. The last one is open only if w + pending(s) <= capacity.
//
// Source: the branching on the lowest position is that of canonical solutions (google/minimalloc); asking the niche
// section with the fewest answers is the first-fail principle (Haralick and Elliott, 1980).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bump_arena.h"
#include "failure_weights.h"
#include "search_problem.h"
#include "search_profile.h"
#include "search_state.h"

namespace livepool {

template <typename Unit>
struct Question {
  std::uint32_t section = 0;
  std::uint32_t niche_begin = 0;  // the section's niche
  std::uint32_t niche_end = 0;
  Unit level = 0;
  Unit waste_to = 0;         // w
  bool may_waste = false;    // the last branch is open
  std::int32_t answers = 0;  // candidates, and waste; 0: the state has failed, 1: the answer is forced
};

struct BranchingOptions {
  bool fewest_answers = true;               // else the lowest niche is asked
  bool bound = true;                        // waste must leave room for what is pending
  const FailureWeights* weights = nullptr;  // of the answers but one; none: all are 1
};

// The question of a state, of which `profile` was read. Of equal ones that with the most unplaced bytes.
template <typename Unit>
Question<Unit> Ask(const SearchProfile<Unit>& profile, const SearchState<Unit>& state,
                   const BranchingOptions& options) {
  Question<Unit> best;
  double best_score = 0;
  bool found = false;

  const auto consider = [&](std::uint32_t s, std::uint32_t niche_begin, std::uint32_t niche_end, Unit least_top) {
    Question<Unit> question{
        .section = s, .niche_begin = niche_begin, .niche_end = niche_end, .level = profile.level(s)};
    question.waste_to = std::min(profile.next_level(s), least_top);
    question.may_waste = !options.bound || question.waste_to <= state.capacity - profile.pending(s);
    question.answers = static_cast<std::int32_t>(profile.candidates(s)) + (question.may_waste ? 1 : 0);
    double score = options.fewest_answers ? question.answers : static_cast<double>(question.level);
    // No answer and a single one are settled at once, whatever the weights say.
    if (options.weights != nullptr && question.answers > 1) score = 1 + (score - 1) * (*options.weights)[s];
    if (!found || score < best_score || (score == best_score && profile.pending(s) > profile.pending(best.section))) {
      best = question;
      best_score = score;
      found = true;
    }
  };

  for (std::uint32_t first = state.begin; first < state.end;) {
    const Unit level = profile.level(first);
    std::uint32_t last = first;
    Unit least_top = SearchProfile<Unit>::kNone;
    for (; last < state.end && profile.level(last) == level; ++last) {
      least_top = std::min(least_top, profile.least_top(last));
    }
    const bool niche = level != SearchProfile<Unit>::kNone &&
                       (first == state.begin || profile.level(first - 1) > level) &&
                       (last == state.end || profile.level(last) > level);
    if (niche) {
      for (std::uint32_t s = first; s < last; ++s) consider(s, first, last, least_top);
    }
    first = last;
  }
  return best;
}

// The candidates of a question, as indices in the state's list, best rank first, with memory of `arena`. With `twins`,
// of those with one range and one size only the first is taken: they could change places.
template <typename Unit>
std::span<const std::uint16_t> Candidates(const SearchProblem& problem, const SearchState<Unit>& state,
                                          const Question<Unit>& question, std::span<const double> rank, bool twins,
                                          BumpArena& arena) {
  auto* const found = arena.Take<std::uint16_t>(static_cast<std::size_t>(question.answers));
  std::size_t count = 0;
  for (std::size_t i = state.count; i-- > 0 && state.open[i].offset <= question.level;) {
    const SearchProblem::Item& item = problem.items[state.open[i].item];
    if (state.open[i].offset != question.level || !item.Covers(question.section)) continue;
    const bool twin = twins && std::any_of(found, found + count, [&](std::uint16_t other) {
                        return problem.items[state.open[other].item] == item;
                      });
    if (!twin) found[count++] = static_cast<std::uint16_t>(i);
  }
  std::sort(found, found + count, [&](std::uint16_t a, std::uint16_t b) {
    const std::uint16_t x = state.open[a].item;
    const std::uint16_t y = state.open[b].item;
    return rank[x] != rank[y] ? rank[x] < rank[y] : x < y;
  });
  return {found, count};
}

}  // namespace livepool
