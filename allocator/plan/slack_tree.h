// The waste that each section can still afford.
#pragma once

#include <cstddef>
#include <vector>

#include "livepool/base/units.h"
#include "sections.h"

namespace livepool {

// A segment tree over numbers, by section: takes from a range, finds the least of a range. Both O(log n).
//
// Invariant: the value at section s is the sum of `added` over all nodes above and at s's leaf, and
//     least(node) = added(node) + min over the children of least(child).
//
// Both walk up from the leaves beside the range. The range is what lies between the two paths, hence the right sibling
// of a node on the left path wherever that is a left child, and the other way round, until the paths meet in siblings.
class SlackTree {
 public:
  struct Least {
    Bytes slack = 0;
    SectionIndex section = 0;  // the leftmost of equal ones
  };

  // `slack` by section; not empty.
  explicit SlackTree(const std::vector<Bytes>& slack);

  void Subtract(const SectionRange& range, Bytes waste);
  // `range` is not empty.
  Least LeastIn(const SectionRange& range) const;

 private:
  struct Node {
    Bytes least = 0;
    Bytes added = 0;
  };

  // There is a leaf before the first section, and one after the last.
  std::size_t LeafOf(SectionIndex section) const { return leaf_count_ + 1 + section; }
  static bool AreSiblings(std::size_t a, std::size_t b) { return (a ^ b) == 1; }
  // The leftmost section below `node` that holds its least.
  SectionIndex ArgLeast(std::size_t node) const;

  std::size_t leaf_count_;   // a power of two
  std::vector<Node> nodes_;  // 1 is the root, 2i and 2i + 1 the children of i
};

}  // namespace livepool
