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
  void Subtract(std::size_t node, const SectionRange& below, const SectionRange& range, Bytes waste);
  void Find(std::size_t node, const SectionRange& below, Bytes above, const SectionRange& range, Least& least) const;
  // The leftmost section below `node` that holds its least.
  SectionIndex ArgLeast(std::size_t node) const;

  std::size_t leaf_count_;    // a power of two
  std::vector<Bytes> least_;  // by node: 1 is the root, 2i and 2i + 1 the children of i
  std::vector<Bytes> added_;  // by node
};

}  // namespace livepool
