// The skyline itself: flat segments side by side.
#pragma once

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "livepool/base/units.h"
#include "sections.h"

namespace livepool {

// The skyline over sections [0, count), count > 0: segments that touch, each known by the section it begins at.
class SkylineSegments {
 public:
  explicit SkylineSegments(SectionIndex count) : end_(count), previous_(count + 1), level_(count, kNone) {
    Add({0, count}, 0);
  }

  // Pops the lowest segment, merged with its neighbours of equal level. It stays in the skyline until it is
  // replaced or raised, one of which must follow.
  SectionRange PopLowest() {
    while (level_[lowest_.top().second] != lowest_.top().first) lowest_.pop();  // outdated
    const auto [level, begin] = lowest_.top();
    lowest_.pop();
    // Equal levels pop from left to right, so only right neighbours can be equal.
    while (end_[begin] < end_.size() && level_[end_[begin]] == level) {
      const SectionIndex right = end_[begin];
      level_[right] = kNone;
      Link({begin, end_[right]});
    }
    return {begin, end_[begin]};
  }

  Bytes level(const SectionRange& segment) const { return level_[segment.begin]; }

  // `part` of `segment` gets level `top`; what is left and right of it keeps its level.
  void Replace(const SectionRange& segment, const SectionRange& part, Bytes top) {
    const Bytes level = level_[segment.begin];
    level_[segment.begin] = kNone;
    if (segment.begin < part.begin) Add({segment.begin, part.begin}, level);
    Add(part, top);
    if (part.end < segment.end) Add({part.end, segment.end}, level);
  }

  // Raises `segment` to its lower neighbour or to `ceiling`, and returns that level. There must be one of them.
  Bytes Raise(const SectionRange& segment, Bytes ceiling) {
    Bytes wall = ceiling;
    if (segment.begin > 0) wall = std::min(wall, level_[previous_[segment.begin]]);
    if (segment.end < end_.size()) wall = std::min(wall, level_[segment.end]);
    Add(segment, wall);
    return wall;
  }

 private:
  static constexpr Bytes kNone = -1;  // no segment begins here

  void Link(const SectionRange& segment) {
    end_[segment.begin] = segment.end;
    previous_[segment.end] = segment.begin;
  }

  void Add(const SectionRange& segment, Bytes level) {
    Link(segment);
    level_[segment.begin] = level;
    lowest_.emplace(level, segment.begin);
  }

  using LevelAndBegin = std::pair<Bytes, SectionIndex>;

  std::vector<SectionIndex> end_;       // by begin
  std::vector<SectionIndex> previous_;  // by begin: where the left neighbour begins
  std::vector<Bytes> level_;            // by begin, or kNone
  // Lowest and leftmost on top. An entry whose level is no longer its segment's is outdated.
  std::priority_queue<LevelAndBegin, std::vector<LevelAndBegin>, std::greater<>> lowest_;
};

}  // namespace livepool
