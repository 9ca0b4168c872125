// The buffers that the skyline has yet to place, asked by section range.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "range_tree.h"
#include "sections.h"

namespace livepool {

// Over a RangeTree, each node keeps the best rank of the unplaced buffers below it. A query is a branch and bound: it
// enters only nodes whose box may hold a buffer that fits and whose rank is better than the best one found, the
// better child first; a node that lies wholly in the quadrant asked for answers at once.
// O(log n) on real traces; O(sqrt n) nodes on the boundary of a quadrant in the worst case, times those of bad rank.
class UnplacedBuffers {
 public:
  // All buffers. `by_rank` lists their indices, best first. `tree` must outlive this object.
  UnplacedBuffers(const RangeTree& tree, const std::vector<std::size_t>& by_rank);

  bool empty() const { return count_ == 0; }

  // The best-ranked buffer whose range lies inside `gap`.
  std::optional<std::size_t> BestInside(const SectionRange& gap) const;
  // The same among those that cover `section`, which lies in the gap.
  std::optional<std::size_t> BestInside(const SectionRange& gap, SectionIndex section) const;

  // Takes out a buffer that is there. O(log n).
  void Remove(std::size_t buffer);

 private:
  using Index = RangeTree::Index;
  static constexpr Index kNone = std::numeric_limits<Index>::max();

  // A query on its way: begin in [first_begin, last_begin], end in [first_end, last_end], rank below `best`.
  struct Search {
    Index first_begin, last_begin, first_end, last_end;
    Index best = kNone;
  };

  std::optional<std::size_t> Run(Search search) const;
  void Descend(Index node, Search& search) const;
  void ScanLeaf(Index leaf, Search& search) const;

  const RangeTree& tree_;
  std::vector<Index> buffer_of_rank_;
  std::vector<Index> rank_of_slot_;  // kNone once placed
  std::vector<Index> best_;          // by node; kNone if all are placed
  std::size_t count_;
};

}  // namespace livepool
