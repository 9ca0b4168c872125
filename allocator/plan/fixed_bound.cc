#include "fixed_bound.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <vector>

#include "placed_buffers.h"

namespace livepool {
namespace {

Bytes TopOfFixed(const Problem& problem) {
  Bytes top = 0;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed_offset) top = std::max(top, *buffer.fixed_offset + buffer.size);
  }
  return top;
}

// The end of the lowest place for `buffer` between `taken`, which are sorted by begin.
Bytes LowestEnd(const Buffer& buffer, const std::vector<PlacedBuffers::Range>& taken) {
  Bytes top = 0;
  for (const PlacedBuffers::Range& range : taken) {
    const Bytes end = AlignUp(top, buffer.alignment) + buffer.size;
    if (end <= range.begin) return end;
    top = std::max(top, range.end);
  }
  return AlignUp(top, buffer.alignment) + buffer.size;
}

Bytes HighestOfLowestEnds(const Problem& problem) {
  PlacedBuffers fixed(problem);
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].fixed_offset) fixed.Insert(i, *problem.buffers[i].fixed_offset);
  }
  Bytes highest = 0;
  for (const Buffer& buffer : problem.buffers) {
    if (!buffer.fixed_offset) highest = std::max(highest, LowestEnd(buffer, fixed.During(buffer.lifetime)));
  }
  return highest;
}

// What lives at one time.
class Pour {
 public:
  explicit Pour(Bytes unit) : unit_(unit) {}

  void Add(const Buffer& buffer) {
    if (buffer.fixed_offset) {
      walls_.emplace(*buffer.fixed_offset, *buffer.fixed_offset + buffer.size);
    } else {
      sizes_.insert(buffer.size);
      volume_ += buffer.size;
    }
  }
  void Remove(const Buffer& buffer) {
    if (buffer.fixed_offset) {
      walls_.erase(*buffer.fixed_offset);
    } else {
      sizes_.erase(sizes_.find(buffer.size));
      volume_ -= buffer.size;
    }
  }

  Bytes Level() const {
    if (sizes_.empty()) return 0;
    Bytes left = volume_;
    Bytes floor = 0;
    for (const auto& [begin, end] : walls_) {
      const Bytes room = begin - floor < *sizes_.begin() ? 0 : (begin - floor) / unit_ * unit_;
      if (left <= room) break;
      left -= room;
      floor = end;
    }
    return floor + left;
  }

 private:
  const Bytes unit_;  // divides all sizes
  std::map<Bytes, Bytes> walls_;
  std::multiset<Bytes> sizes_;
  Bytes volume_ = 0;
};

Bytes HighestLevel(const Problem& problem) {
  // Deaths before births of one time. What is alive after some of the births is a bound too.
  std::vector<std::tuple<Time, bool, std::size_t>> events;
  Bytes unit = 0;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    events.emplace_back(buffer.lifetime.birth, true, i);
    events.emplace_back(buffer.lifetime.death, false, i);
    if (!buffer.fixed_offset) unit = std::gcd(unit, buffer.size);
  }
  std::sort(events.begin(), events.end());
  Pour live(unit);
  Bytes highest = 0;
  for (const auto& [time, birth, i] : events) {
    if (!birth) {
      live.Remove(problem.buffers[i]);
      continue;
    }
    live.Add(problem.buffers[i]);
    highest = std::max(highest, live.Level());
  }
  return highest;
}

}  // namespace

Bytes FixedBound(const Problem& problem) {
  const Bytes top = TopOfFixed(problem);
  if (top == 0) return 0;
  return std::max({top, HighestOfLowestEnds(problem), HighestLevel(problem)});
}

}  // namespace livepool
