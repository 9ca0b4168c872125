// The buffers that the skyline has yet to place, asked by section range.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "sections.h"

namespace livepool {

// A static binary tree over the buffers sorted by the first section of their ranges. Each node keeps, over the
// unplaced buffers below it, the best rank and the earliest end of a range. A query is a branch and bound: it
// enters only nodes that may hold a buffer that fits and is better than the best one found.
// Fast on real traces, where most ranges are short; O(n) for a query in the worst case.
class UnplacedBuffers {
 public:
  // All buffers. `by_rank` lists their indices, best first.
  UnplacedBuffers(const Sections& sections, const std::vector<std::size_t>& by_rank);

  bool empty() const { return count_ == 0; }

  // The best-ranked buffer whose range lies inside `gap`.
  std::optional<std::size_t> BestInside(const SectionRange& gap) const;

  // Takes out a buffer that is there. O(log n).
  void Remove(std::size_t buffer);

 private:
  using Rank = std::size_t;

  // What a node knows of the buffers below it. Default: there are none.
  struct Summary {
    Rank best_rank = static_cast<Rank>(-1);
    SectionIndex first_end = static_cast<SectionIndex>(-1);
  };
  // A query on its way.
  struct Search {
    std::size_t first_leaf, last_leaf;  // half-open: buffers whose range begins inside the gap
    SectionIndex end;                   // where it must end at the latest
    Rank best;
  };

  void Descend(std::size_t node, std::size_t leaf, std::size_t leaves, Search& search) const;
  void Update(std::size_t node);

  std::vector<std::size_t> by_rank_;
  std::vector<std::size_t> first_leaf_;  // by section: the first leaf whose range begins there or later
  std::vector<std::size_t> leaf_of_;     // by buffer
  std::size_t leaf_count_;               // a power of two
  std::vector<Summary> summaries_;       // by node: 1 is the root, 2i and 2i + 1 the children of i
  std::size_t count_;
};

}  // namespace livepool
