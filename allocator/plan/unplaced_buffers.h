// The buffers that the skyline has yet to pass, asked by section range.
#pragma once

#include <cstddef>
#include <functional>
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
  // All buffers, or some: `by_rank` lists their indices, best first. `tree` must outlive this object.
  UnplacedBuffers(const RangeTree& tree, const std::vector<std::size_t>& by_rank);

  bool empty() const { return count_ == 0; }

  // What else a buffer must fulfil to be an answer; empty: nothing.
  using Fits = std::function<bool(std::size_t buffer)>;

  // The best-ranked buffer whose range lies inside `gap`.
  std::optional<std::size_t> BestInside(const SectionRange& gap, const Fits& fits = {}) const;
  // The same among those that cover `section`, which lies in the gap.
  std::optional<std::size_t> BestInside(const SectionRange& gap, SectionIndex section, const Fits& fits = {}) const;
  // The best-ranked buffer whose range has a section in common with `range`.
  std::optional<std::size_t> BestOverlapping(const SectionRange& range) const;

  // Takes out a buffer that is there. O(log n).
  void Remove(std::size_t buffer);

 private:
  using Index = RangeTree::Index;
  static constexpr Index kNone = std::numeric_limits<Index>::max();

  // A query on its way: begin in [first_begin, last_begin], end in [first_end, last_end], rank below `best`.
  struct Search {
    Index first_begin, last_begin, first_end, last_end;
    const Fits* fits = nullptr;  // null: everything does
    Index best = kNone;

    bool Accepts(std::size_t buffer) const { return fits == nullptr || (*fits)(buffer); }
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
