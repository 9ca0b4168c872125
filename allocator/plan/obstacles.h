// The fixed buffers that the skyline has not passed yet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "livepool/plan/problem.h"
#include "range_tree.h"
#include "rule.h"
#include "unplaced_buffers.h"

namespace livepool {

// A fixed buffer is ahead as long as the skyline lies below it.
class Obstacles {
 public:
  // `problem` and `tree`, that of its sections, must outlive this object.
  Obstacles(const Problem& problem, const RangeTree& tree) : problem_(problem), ahead_(tree, FixedByOffset(problem)) {}

  // The lowest one over `range`.
  std::optional<std::size_t> Over(const SectionRange& range) const { return ahead_.BestOverlapping(range); }
  // Where it begins; kNoLimit if there is none.
  Bytes CeilingOver(const SectionRange& range) const {
    const auto lowest = Over(range);
    return lowest ? *problem_.buffers[*lowest].fixed_offset : kNoLimit;
  }
  void Passed(std::size_t buffer) { ahead_.Remove(buffer); }

 private:
  static std::vector<std::size_t> FixedByOffset(const Problem& problem) {
    std::vector<std::size_t> fixed;
    for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
      if (problem.buffers[i].fixed_offset) fixed.push_back(i);
    }
    std::sort(fixed.begin(), fixed.end(), [&](std::size_t a, std::size_t b) {
      const auto key = [&](std::size_t i) {
        return std::pair(*problem.buffers[i].fixed_offset, problem.buffers[i].id);
      };
      return key(a) < key(b);
    });
    return fixed;
  }

  const Problem& problem_;
  UnplacedBuffers ahead_;  // the rank is the offset
};

}  // namespace livepool
