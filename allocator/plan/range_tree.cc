#include "range_tree.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace livepool {
namespace {

RangeTree::Index LeavesFor(std::size_t buffers) {
  const std::size_t per_leaf = RangeTree::kBuffersPerLeaf;
  return static_cast<RangeTree::Index>(std::bit_ceil((buffers + per_leaf - 1) / per_leaf));
}

}  // namespace

RangeTree::RangeTree(const Sections& sections)
    : leaf_count_(LeavesFor(sections.ranges.size())),
      buffer_of_(sections.ranges.size()),
      slot_of_(sections.ranges.size()),
      leaf_of_(sections.ranges.size()),
      boxes_(2 * std::size_t{leaf_count_}) {
  std::iota(buffer_of_.begin(), buffer_of_.end(), Index{0});
  Split(sections, 1, 0, leaf_count_);
  points_.reserve(buffer_of_.size());
  for (const Index buffer : buffer_of_) {
    const SectionRange& range = sections.ranges[buffer];
    slot_of_[buffer] = static_cast<Index>(points_.size());
    points_.push_back({static_cast<Index>(range.begin), static_cast<Index>(range.end)});
  }
  for (Index leaf = 0; leaf < leaf_count_; ++leaf) {
    for (Index slot = slot_begin(leaf); slot < slot_begin(leaf + 1); ++slot) leaf_of_[buffer_of_[slot]] = leaf;
  }
}

// Sorts the buffers of `leaves` leaves so that each half of the leaves gets the lower or upper half along the wider
// side of their box.
void RangeTree::Split(const Sections& sections, Index node, Index first_leaf, Index leaves) {
  const auto first = buffer_of_.begin() + slot_begin(first_leaf);
  const auto last = buffer_of_.begin() + slot_begin(first_leaf + leaves);
  constexpr Index kMax = std::numeric_limits<Index>::max();
  Box box{kMax, 0, kMax, 0};
  for (auto it = first; it != last; ++it) {
    const auto begin = static_cast<Index>(sections.ranges[*it].begin);
    const auto end = static_cast<Index>(sections.ranges[*it].end);
    box = {std::min(box.first_begin, begin), std::max(box.last_begin, begin), std::min(box.first_end, end),
           std::max(box.last_end, end)};
  }
  boxes_[node] = box;
  if (leaves == 1) return;
  const bool by_begin = box.last_begin - box.first_begin > box.last_end - box.first_end;
  const auto middle = buffer_of_.begin() + slot_begin(first_leaf + leaves / 2);
  std::nth_element(first, middle, last, [&](Index a, Index b) {
    const SectionRange& x = sections.ranges[a];
    const SectionRange& y = sections.ranges[b];
    if (by_begin && x.begin != y.begin) return x.begin < y.begin;
    if (!by_begin && x.end != y.end) return x.end < y.end;
    return a < b;
  });
  Split(sections, 2 * node, first_leaf, leaves / 2);
  Split(sections, 2 * node + 1, first_leaf + leaves / 2, leaves / 2);
}

}  // namespace livepool
