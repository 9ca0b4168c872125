#include "sections.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace livepool {
namespace {

struct Event {
  Time time = 0;
  bool birth = false;
  std::size_t buffer = 0;
};

std::vector<Event> EventsInOrder(const Problem& problem) {
  std::vector<Event> events;
  events.reserve(2 * problem.buffers.size());
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    events.push_back({problem.buffers[i].lifetime.birth, true, i});
    events.push_back({problem.buffers[i].lifetime.death, false, i});
  }
  // Deaths before births. Among the deaths (or births) of one time the order changes nothing.
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.time != b.time ? a.time < b.time : a.birth < b.birth; });
  return events;
}

// Maxima of ranges of `values`: level k holds the maximum of each run of 2^k values.
class RangeMax {
 public:
  explicit RangeMax(const std::vector<Bytes>& values) : levels_{values} {
    for (std::size_t width = 2; width <= values.size(); width *= 2) {
      const std::vector<Bytes>& half = levels_.back();
      std::vector<Bytes> level(values.size() - width + 1);
      for (std::size_t i = 0; i < level.size(); ++i) level[i] = std::max(half[i], half[i + width / 2]);
      levels_.push_back(std::move(level));
    }
  }

  Bytes operator()(const SectionRange& range) const {
    const std::size_t width = std::bit_floor(range.end - range.begin);
    const std::vector<Bytes>& level = levels_[static_cast<std::size_t>(std::countr_zero(width))];
    return std::max(level[range.begin], level[range.end - width]);
  }

 private:
  std::vector<std::vector<Bytes>> levels_;
};

}  // namespace

Sections CutIntoSections(const Problem& problem) {
  Sections sections;
  sections.ranges.resize(problem.buffers.size());
  Bytes live = 0;
  bool born_since_last = false;  // the buffers alive now are not all in the last section
  for (const Event& event : EventsInOrder(problem)) {
    const Bytes size = problem.buffers[event.buffer].size;
    if (event.birth) {
      sections.ranges[event.buffer].begin = sections.count();
      live += size;
      born_since_last = true;
      continue;
    }
    if (born_since_last) {
      sections.live.push_back(live);
      born_since_last = false;
    }
    sections.ranges[event.buffer].end = sections.count();
    live -= size;
  }
  return sections;
}

std::vector<Bytes> PeaksAround(const Sections& sections) {
  const RangeMax peak(sections.live);
  std::vector<Bytes> peaks;
  peaks.reserve(sections.ranges.size());
  for (const SectionRange& range : sections.ranges) peaks.push_back(peak(range));
  return peaks;
}

}  // namespace livepool
