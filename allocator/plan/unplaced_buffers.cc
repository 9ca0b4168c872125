#include "unplaced_buffers.h"

#include <algorithm>

namespace livepool {

UnplacedBuffers::UnplacedBuffers(const RangeTree& tree, const std::vector<std::size_t>& by_rank)
    : tree_(tree),
      buffer_of_rank_(by_rank.begin(), by_rank.end()),
      rank_of_slot_(tree.buffer_count(), kNone),
      best_(2 * std::size_t{tree.leaf_count()}, kNone),
      count_(by_rank.size()) {
  for (Index rank = 0; rank < by_rank.size(); ++rank) {
    const std::size_t buffer = by_rank[rank];
    rank_of_slot_[tree.slot_of(buffer)] = rank;
    Index& leaf = best_[tree.leaf_count() + tree.leaf_of(buffer)];
    leaf = std::min(leaf, rank);
  }
  for (Index node = tree.leaf_count() - 1; node > 0; --node)
    best_[node] = std::min(best_[2 * node], best_[2 * node + 1]);
}

std::optional<std::size_t> UnplacedBuffers::BestInside(const SectionRange& gap, const Fits& fits) const {
  const auto begin = static_cast<Index>(gap.begin);
  const auto end = static_cast<Index>(gap.end);
  return Run(
      {.first_begin = begin, .last_begin = end, .first_end = begin, .last_end = end, .fits = fits ? &fits : nullptr});
}

std::optional<std::size_t> UnplacedBuffers::BestInside(const SectionRange& gap, SectionIndex section,
                                                       const Fits& fits) const {
  const auto covered = static_cast<Index>(section);
  return Run({.first_begin = static_cast<Index>(gap.begin),
              .last_begin = covered,
              .first_end = covered + 1,
              .last_end = static_cast<Index>(gap.end),
              .fits = fits ? &fits : nullptr});
}

std::optional<std::size_t> UnplacedBuffers::BestOverlapping(const SectionRange& range) const {
  return Run({.first_begin = 0,
              .last_begin = static_cast<Index>(range.end) - 1,
              .first_end = static_cast<Index>(range.begin) + 1,
              .last_end = kNone});
}

std::optional<std::size_t> UnplacedBuffers::Run(Search search) const {
  Descend(1, search);
  if (search.best == kNone) return std::nullopt;
  return buffer_of_rank_[search.best];
}

void UnplacedBuffers::Remove(std::size_t buffer) {
  rank_of_slot_[tree_.slot_of(buffer)] = kNone;
  const Index leaf = tree_.leaf_of(buffer);
  const auto first = rank_of_slot_.begin() + tree_.slot_begin(leaf);
  const auto last = rank_of_slot_.begin() + tree_.slot_begin(leaf + 1);
  Index node = tree_.leaf_count() + leaf;
  best_[node] = *std::min_element(first, last);
  for (node /= 2; node > 0; node /= 2) {
    const Index best = std::min(best_[2 * node], best_[2 * node + 1]);
    if (best == best_[node]) break;  // nothing changes above
    best_[node] = best;
  }
  --count_;
}

void UnplacedBuffers::Descend(Index node, Search& search) const {
  if (best_[node] >= search.best) return;
  const RangeTree::Box& box = tree_.box(node);
  if (box.last_begin < search.first_begin || box.first_begin > search.last_begin || box.last_end < search.first_end ||
      box.first_end > search.last_end) {
    return;
  }
  if (box.first_begin >= search.first_begin && box.last_begin <= search.last_begin &&
      box.first_end >= search.first_end && box.last_end <= search.last_end &&
      search.Accepts(buffer_of_rank_[best_[node]])) {
    search.best = best_[node];
    return;
  }
  if (node >= tree_.leaf_count()) {
    ScanLeaf(node - tree_.leaf_count(), search);
    return;
  }
  // The child with the better rank first: what it finds may spare us the other.
  const Index better = best_[2 * node + 1] < best_[2 * node] ? 1 : 0;
  Descend(2 * node + better, search);
  Descend(2 * node + 1 - better, search);
}

void UnplacedBuffers::ScanLeaf(Index leaf, Search& search) const {
  for (Index slot = tree_.slot_begin(leaf); slot < tree_.slot_begin(leaf + 1); ++slot) {
    const RangeTree::Point& point = tree_.point_of(slot);
    if (rank_of_slot_[slot] < search.best && point.begin >= search.first_begin && point.begin <= search.last_begin &&
        point.end >= search.first_end && point.end <= search.last_end &&
        search.Accepts(buffer_of_rank_[rank_of_slot_[slot]])) {
      search.best = rank_of_slot_[slot];
    }
  }
}

}  // namespace livepool
