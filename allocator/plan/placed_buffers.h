// The buffers that a rule has placed so far, asked by lifetime.
#pragma once

#include <cstddef>
#include <vector>

#include "livepool/plan/problem.h"

namespace livepool {

// A static binary tree over all buffers of the problem, sorted by birth; each node keeps the latest death
// among the *placed* buffers below it. Those that overlap [birth, death) have an earlier birth than `death`,
// which is a prefix of the leaves, and a later death than `birth`, which the nodes decide.
// O(n) memory: there is no list of overlapping pairs, which grows with n x live buffers.
class PlacedBuffers {
 public:
  struct Range {
    Bytes begin = 0;
    Bytes end = 0;
    std::size_t buffer = 0;  // index in problem.buffers
  };

  // Empty. `problem` must outlive this object.
  explicit PlacedBuffers(const Problem& problem);

  // Buffer `index` lies at `offset` from now on. O(log n).
  void Insert(std::size_t index, Bytes offset);

  // The ranges of the placed buffers that overlap `lifetime` in time, by ascending begin. Valid until the
  // next call. O(k log n) for k of them.
  const std::vector<Range>& During(const Lifetime& lifetime);

 private:
  void Collect(std::size_t node, std::size_t first_leaf, std::size_t leaves, const Lifetime& lifetime);

  const Problem& problem_;
  std::vector<std::size_t> by_birth_;  // leaf -> buffer
  std::vector<std::size_t> leaf_of_;   // buffer -> leaf
  std::vector<Bytes> offsets_;         // by buffer; meaningful once placed
  std::size_t leaf_count_ = 1;         // a power of two
  std::vector<Time> latest_death_;     // by node: 1 is the root, 2i and 2i + 1 the children of i
  std::vector<Range> found_;
};

}  // namespace livepool
