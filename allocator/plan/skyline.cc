#include "skyline.h"

#include <algorithm>
#include <utility>

#include "obstacles.h"
#include "skyline_segments.h"
#include "slack_tree.h"
#include "unplaced_buffers.h"

namespace livepool {
namespace {

// Which buffer comes next on a segment.
class Choice {
 public:
  Choice(const Problem& problem, const Sections& sections, const RangeTree& tree, const SkylineOptions& options)
      : unplaced_(tree, WithoutFixed(problem, options.by_rank)), section_count_(sections.count()) {
    if (!options.tightness) return;
    const Bytes bound = std::max(options.bound, *std::max_element(sections.live.begin(), sections.live.end()));
    scarce_ = static_cast<Bytes>(*options.tightness * static_cast<double>(bound));
    std::vector<Bytes> slack;
    slack.reserve(sections.count());
    for (const Bytes live : sections.live) slack.push_back(bound - live);
    slack_.emplace(slack);
  }

  bool done() const { return unplaced_.empty(); }

  std::optional<std::size_t> For(const SectionRange& segment, const UnplacedBuffers::Fits& fits) const {
    if (slack_) {
      const SlackTree::Least least = slack_->LeastIn(segment);
      if (least.slack <= scarce_) {
        const auto best = unplaced_.BestInside(segment, least.section, fits);
        // Below no obstacle everything fits on the whole skyline; so if nothing covers the section any more, its slack
        // is of no use.
        const bool whole = segment == SectionRange{0, section_count_};
        if (best || !whole) return best;
      }
    }
    return unplaced_.BestInside(segment, fits);
  }

  void Placed(std::size_t buffer) { unplaced_.Remove(buffer); }
  void Lost(const SectionRange& range, Bytes bytes) {
    if (slack_ && bytes > 0) slack_->Subtract(range, bytes);
  }

 private:
  static std::vector<std::size_t> WithoutFixed(const Problem& problem, std::vector<std::size_t> by_rank) {
    std::erase_if(by_rank, [&](std::size_t i) { return problem.buffers[i].fixed_offset.has_value(); });
    return by_rank;
  }

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
  for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] = problem.buffers[i].fixed_offset.value_or(0);
  Obstacles obstacles(problem, tree);
  Choice choice(problem, sections, tree, options);
  SkylineSegments segments(sections.count());
  while (!choice.done()) {
    const SectionRange segment = segments.PopLowest();
    const Bytes level = segments.level(segment);
    const auto top_of = [&](std::size_t i) {
      return AlignUp(level, problem.buffers[i].alignment) + problem.buffers[i].size;
    };
    const auto obstacle = obstacles.Over(segment);
    const Bytes ceiling = obstacle ? *problem.buffers[*obstacle].fixed_offset : kNoLimit;
    if (ceiling == level) {
      obstacles.Passed(*obstacle);
      segments.Replace(segment, sections.ranges[*obstacle], level + problem.buffers[*obstacle].size);
      continue;
    }
    const UnplacedBuffers::Fits below_obstacles = [&](std::size_t i) {
      return top_of(i) <= ceiling || top_of(i) <= obstacles.CeilingOver(sections.ranges[i]);
    };
    const auto next = choice.For(segment, obstacle ? below_obstacles : UnplacedBuffers::Fits());
    if (!next) {
      // Without an obstacle, what is unplaced fits on the whole skyline: so this segment is not all of it.
      choice.Lost(segment, segments.Raise(segment, ceiling) - level);
      continue;
    }
    const Bytes top = top_of(*next);
    if (top >= limit) return std::nullopt;
    offsets[*next] = top - problem.buffers[*next].size;
    choice.Lost(sections.ranges[*next], offsets[*next] - level);
    segments.Replace(segment, sections.ranges[*next], top);
    choice.Placed(*next);
  }
  return offsets;
}

}  // namespace livepool
