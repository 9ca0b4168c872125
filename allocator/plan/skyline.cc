#include "skyline.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "slack_tree.h"
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

  // Raises `segment` to its lower neighbour, and returns that level. There must be a neighbour.
  Bytes Raise(const SectionRange& segment) {
    Bytes wall = std::numeric_limits<Bytes>::max();
    if (segment.begin > 0) wall = level_[previous_[segment.begin]];
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

// Which buffer comes next on a segment.
class Choice {
 public:
  Choice(const Sections& sections, const RangeTree& tree, const SkylineOptions& options)
      : unplaced_(tree, options.by_rank), section_count_(sections.count()) {
    if (!options.tightness) return;
    const Bytes bound = *std::max_element(sections.live.begin(), sections.live.end());
    scarce_ = static_cast<Bytes>(*options.tightness * static_cast<double>(bound));
    std::vector<Bytes> slack;
    slack.reserve(sections.count());
    for (const Bytes live : sections.live) slack.push_back(bound - live);
    slack_.emplace(slack);
  }

  bool done() const { return unplaced_.empty(); }

  std::optional<std::size_t> For(const SectionRange& segment) const {
    if (slack_) {
      const SlackTree::Least least = slack_->LeastIn(segment);
      if (least.slack <= scarce_) {
        const auto best = unplaced_.BestInside(segment, least.section);
        // On the whole skyline everything fits; so if nothing covers the section any more, its slack is of no use.
        const bool whole = segment == SectionRange{0, section_count_};
        if (best || !whole) return best;
      }
    }
    return unplaced_.BestInside(segment);
  }

  void Placed(std::size_t buffer) { unplaced_.Remove(buffer); }
  void Lost(const SectionRange& range, Bytes bytes) {
    if (slack_ && bytes > 0) slack_->Subtract(range, bytes);
  }

 private:
  UnplacedBuffers unplaced_;
  SectionIndex section_count_;
  std::optional<SlackTree> slack_;
  Bytes scarce_ = 0;
};

}  // namespace

RuleResult Skyline(const Problem& problem, const Sections& sections, const RangeTree& tree,
                   const SkylineOptions& options, Bytes limit) {
  Offsets offsets(problem.buffers.size());
  if (offsets.empty()) return offsets;  // there is no section, hence no segment
  Choice choice(sections, tree, options);
  Segments segments(sections.count());
  while (!choice.done()) {
    const SectionRange segment = segments.PopLowest();
    const Bytes level = segments.level(segment);
    const auto next = choice.For(segment);
    if (!next) {
      // What is unplaced fits on the whole skyline, so this segment is not all of it.
      choice.Lost(segment, segments.Raise(segment) - level);
      continue;
    }
    const Buffer& buffer = problem.buffers[*next];
    offsets[*next] = AlignUp(level, buffer.alignment);
    const Bytes top = offsets[*next] + buffer.size;
    if (top >= limit) return std::nullopt;
    choice.Lost(sections.ranges[*next], offsets[*next] - level);
    segments.Replace(segment, sections.ranges[*next], top);
    choice.Placed(*next);
  }
  return offsets;
}

}  // namespace livepool
