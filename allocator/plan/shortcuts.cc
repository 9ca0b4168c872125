#include "shortcuts.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>
#include <vector>

namespace livepool {
namespace {

bool AnyFixed(const Problem& problem) {
  return std::any_of(problem.buffers.begin(), problem.buffers.end(),
                     [](const Buffer& buffer) { return buffer.fixed_offset.has_value(); });
}

// Intervals that overlap in pairs have a point in common.
bool AllLiveAtOnce(const Problem& problem) {
  Lifetime common = problem.buffers.front().lifetime;
  for (const Buffer& buffer : problem.buffers) {
    common.birth = std::max(common.birth, buffer.lifetime.birth);
    common.death = std::min(common.death, buffer.lifetime.death);
  }
  return common.birth < common.death;
}

// The indices of all buffers, sorted by `key`.
template <typename Key>
std::vector<std::size_t> SortedBy(const Problem& problem, Key key) {
  std::vector<std::size_t> sorted(problem.buffers.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::sort(sorted.begin(), sorted.end(),
            [&](std::size_t a, std::size_t b) { return key(problem.buffers[a]) < key(problem.buffers[b]); });
  return sorted;
}

}  // namespace

RuleResult Stack(const Problem& problem) {
  if (problem.buffers.empty() || AnyFixed(problem) || !AllLiveAtOnce(problem)) return std::nullopt;
  Offsets offsets(problem.buffers.size());
  Bytes top = 0;
  for (const std::size_t i : SortedBy(problem, [](const Buffer& b) { return std::pair(-b.alignment, b.id); })) {
    if (top % problem.buffers[i].alignment != 0) return std::nullopt;
    offsets[i] = top;
    top += problem.buffers[i].size;
  }
  return offsets;
}

RuleResult ColourIntervals(const Problem& problem) {
  if (problem.buffers.empty() || AnyFixed(problem)) return std::nullopt;
  const Bytes size = problem.buffers.front().size;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.size != size || size % buffer.alignment != 0) return std::nullopt;
  }

  using Death = std::pair<Time, Bytes>;
  std::priority_queue<Death, std::vector<Death>, std::greater<>> taken;  // the next death on top
  std::priority_queue<Bytes, std::vector<Bytes>, std::greater<>> free;   // the lowest place on top
  Bytes height = 0;                                                      // all places below it are taken or free
  Offsets offsets(problem.buffers.size());
  for (const std::size_t i : SortedBy(problem, [](const Buffer& b) { return std::pair(b.lifetime.birth, b.id); })) {
    const Lifetime& life = problem.buffers[i].lifetime;
    for (; !taken.empty() && taken.top().first <= life.birth; taken.pop()) free.push(taken.top().second);
    if (free.empty()) free.push(std::exchange(height, height + size));
    offsets[i] = free.top();
    free.pop();
    taken.emplace(life.death, offsets[i]);
  }
  return offsets;
}

}  // namespace livepool
