// A static k-d tree over the section ranges of all buffers.
//
// A range [begin, end) is a point in the plane; "inside [p, q)" is the quadrant begin >= p, end <= q, and "covers s"
// the quadrant begin <= s, end > s. Each node knows the box around its points, so that a query can tell which nodes
// may hold an answer. The tree depends on the ranges alone: all rules of a portfolio share it.
//
// Source: Bentley, "Multidimensional binary search trees used for associative searching", 1975.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sections.h"

namespace livepool {

class RangeTree {
 public:
  // Buffers and sections are counted in 32 bits here: the tree is read far more often than anything else.
  using Index = std::uint32_t;

  struct Point {
    Index begin = 0;
    Index end = 0;
  };
  // Around all points below a node: begin in [first_begin, last_begin], end in [first_end, last_end].
  struct Box {
    Index first_begin = 0;
    Index last_begin = 0;
    Index first_end = 0;
    Index last_end = 0;
  };

  // O(n log n).
  explicit RangeTree(const Sections& sections);

  // Nodes 1 (the root) to 2 * leaf_count() - 1; the children of node i are 2i and 2i + 1, the leaves come last.
  Index leaf_count() const { return leaf_count_; }
  std::size_t buffer_count() const { return buffer_of_.size(); }
  const Box& box(Index node) const { return boxes_[node]; }

  // The slots [slot_begin(leaf), slot_begin(leaf + 1)) of a leaf, counted from 0, hold its buffers: at most
  // kBuffersPerLeaf.
  Index slot_begin(Index leaf) const {
    return static_cast<Index>(std::uint64_t{leaf} * buffer_of_.size() / leaf_count_);
  }
  Index buffer_of(Index slot) const { return buffer_of_[slot]; }
  const Point& point_of(Index slot) const { return points_[slot]; }
  Index slot_of(std::size_t buffer) const { return slot_of_[buffer]; }
  Index leaf_of(std::size_t buffer) const { return leaf_of_[buffer]; }

  static constexpr Index kBuffersPerLeaf = 8;

 private:
  void Split(const Sections& sections, Index node, Index first_leaf, Index leaves);

  Index leaf_count_;  // a power of two
  std::vector<Index> buffer_of_;
  std::vector<Point> points_;  // by slot
  std::vector<Index> slot_of_;
  std::vector<Index> leaf_of_;
  std::vector<Box> boxes_;  // by node
};

}  // namespace livepool
