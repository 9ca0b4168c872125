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
//     some unplaced buffer covers s at offset m      one branch for each candidate: not raised, offset m, on s;
//     nothing does, and [m, w) on s is wasted        one branch, where
//         w = min(next larger offset on s, least offset + size over the niche).
// In the second case the lowest buffer on s lies higher than m. Either its offset had to be larger anyway, or it rests
// on a buffer that is still unplaced; that one shares a section of the niche with it, and ends at w at least.
// So the branches are disjoint and complete. The last one is open only if w + pending(s) <= capacity.
//
// Source: the branching on the lowest position is that of canonical solutions (google/minimalloc); asking the niche
// section with the fewest answers is the first-fail principle (Haralick and Elliott, 1980), and weighing sections by
// their failures is the dom/wdeg heuristic (Boussemart et al., 2004).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "search_profile.h"

namespace livepool {

template <typename Unit>
struct Question {
  std::uint32_t section = 0;
  Unit level = 0;
  Unit waste_to = 0;         // w
  bool may_waste = false;    // the last branch is open
  std::int32_t answers = 0;  // candidates, and waste; 0: the state has failed, 1: the answer is forced
};

struct BranchingOptions {
  bool fewest_answers = true;            // else the lowest niche is asked
  bool bound = true;                     // waste must leave room for what is pending
  std::span<const double> weights = {};  // by section, of the answers but one; empty: all are 1
};

// The question of a profile of sections [begin, end) with something unplaced.
template <typename Unit>
Question<Unit> Ask(const SearchProfile<Unit>& profile, std::uint32_t begin, std::uint32_t end, Unit capacity,
                   const BranchingOptions& options) {
  Question<Unit> best;
  double best_score = 0;
  bool found = false;

  const auto consider = [&](std::uint32_t s, Unit least_top) {
    Question<Unit> question{.section = s, .level = profile.level(s)};
    question.waste_to = std::min(profile.next_level(s), least_top);
    question.may_waste = !options.bound || question.waste_to <= capacity - profile.pending(s);
    question.answers = static_cast<std::int32_t>(profile.candidates(s)) + (question.may_waste ? 1 : 0);
    double score = question.answers;
    if (!options.fewest_answers) score = static_cast<double>(question.level);
    // No answer and a single one are settled at once, whatever the weights say.
    if (!options.weights.empty() && question.answers > 1) score = 1 + (score - 1) * options.weights[s];
    if (!found || score < best_score || (score == best_score && profile.pending(s) > profile.pending(best.section))) {
      best = question;
      best_score = score;
      found = true;
    }
  };

  for (std::uint32_t first = begin; first < end;) {
    const Unit level = profile.level(first);
    std::uint32_t last = first;
    Unit least_top = SearchProfile<Unit>::kNone;
    for (; last < end && profile.level(last) == level; ++last) least_top = std::min(least_top, profile.least_top(last));
    const bool niche = level != SearchProfile<Unit>::kNone && (first == begin || profile.level(first - 1) > level) &&
                       (last == end || profile.level(last) > level);
    if (niche) {
      for (std::uint32_t s = first; s < last; ++s) consider(s, least_top);
    }
    first = last;
  }
  return best;
}

}  // namespace livepool
