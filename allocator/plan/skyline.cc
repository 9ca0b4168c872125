#include "skyline.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "unplaced_buffers.h"

namespace livepool {
namespace {

// The skyline over sections [0, count), count > 0: segments that touch, each known by the section it begins at.
class Segments {
 public:
  explicit Segments(SectionIndex count) : end_(count), previous_(count + 1), level_(count, kNone) {
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

  // Raises `segment` to its lower neighbour. There must be a neighbour.
  void Raise(const SectionRange& segment) {
    Bytes wall = std::numeric_limits<Bytes>::max();
    if (segment.begin > 0) wall = level_[previous_[segment.begin]];
    if (segment.end < end_.size()) wall = std::min(wall, level_[segment.end]);
    Add(segment, wall);
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

}  // namespace

RuleResult Skyline(const Problem& problem, const Sections& sections, const std::vector<std::size_t>& by_rank,
                   Bytes limit) {
  Offsets offsets(problem.buffers.size());
  if (offsets.empty()) return offsets;  // there is no section, hence no segment
  UnplacedBuffers unplaced(sections, by_rank);
  Segments segments(sections.count());
  while (!unplaced.empty()) {
    const SectionRange segment = segments.PopLowest();
    const auto best = unplaced.BestInside(segment);
    if (!best) {
      // Something is unplaced and does not fit here, so this segment is not the whole skyline.
      segments.Raise(segment);
      continue;
    }
    const Buffer& buffer = problem.buffers[*best];
    offsets[*best] = AlignUp(segments.level(segment), buffer.alignment);
    const Bytes top = offsets[*best] + buffer.size;
    if (top >= limit) return std::nullopt;
    segments.Replace(segment, sections.ranges[*best], top);
    unplaced.Remove(*best);
  }
  return offsets;
}

}  // namespace livepool
