// The skyline itself: flat segments side by side.
#pragma once

#include <algorithm>
#include <cstdint>
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
  explicit SkylineSegments(SectionIndex count) : segments_(count + 1) { Add({0, count}, 0); }

  // Pops the lowest segment, merged with its neighbours of equal level. It stays in the skyline until it is
  // replaced or raised, one of which must follow.
  SectionRange PopLowest() {
    while (segments_[lowest_.top().second].level != lowest_.top().first) lowest_.pop();  // outdated
    const auto [level, begin] = lowest_.top();
    lowest_.pop();
    // Equal levels pop from left to right, so only right neighbours can be equal.
    while (segments_[begin].end < count() && segments_[segments_[begin].end].level == level) {
      const SectionIndex right = segments_[begin].end;
      segments_[right].level = kNone;
      Link({begin, segments_[right].end});
    }
    return {begin, segments_[begin].end};
  }

  Bytes level(const SectionRange& segment) const { return segments_[segment.begin].level; }

  // `part` of `segment` gets level `top`; what is left and right of it keeps its level.
  void Replace(const SectionRange& segment, const SectionRange& part, Bytes top) {
    const Bytes level = segments_[segment.begin].level;
    segments_[segment.begin].level = kNone;
    if (segment.begin < part.begin) Add({segment.begin, part.begin}, level);
    Add(part, top);
    if (part.end < segment.end) Add({part.end, segment.end}, level);
  }

  // Raises `segment` to its lower neighbour or to `ceiling`, and returns that level. There must be one of them.
  Bytes Raise(const SectionRange& segment, Bytes ceiling) {
    Bytes wall = ceiling;
    if (segment.begin > 0) wall = std::min(wall, segments_[segments_[segment.begin].previous].level);
    if (segment.end < count()) wall = std::min(wall, segments_[segment.end].level);
    Add(segment, wall);
    return wall;
  }

 private:
  static constexpr Bytes kNone = -1;  // no segment begins here

  void Link(const SectionRange& segment) {
    segments_[segment.begin].end = static_cast<std::uint32_t>(segment.end);
    segments_[segment.end].previous = static_cast<std::uint32_t>(segment.begin);
  }

  void Add(const SectionRange& segment, Bytes level) {
    Link(segment);
    segments_[segment.begin].level = level;
    lowest_.emplace(level, segment.begin);
  }

  using LevelAndBegin = std::pair<Bytes, SectionIndex>;

  // Sections are counted in 32 bits here, so that one cache line has all there is to know of a segment.
  struct Segment {
    Bytes level = kNone;
    std::uint32_t end = 0;
    std::uint32_t previous = 0;  // where the left neighbour begins
  };

  SectionIndex count() const { return segments_.size() - 1; }

  std::vector<Segment> segments_;  // by begin; the last one is the end
  // Lowest and leftmost on top. An entry whose level is no longer its segment's is outdated.
  std::priority_queue<LevelAndBegin, std::vector<LevelAndBegin>, std::greater<>> lowest_;
};

}  // namespace livepool
