#include "offset_best_fit.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "placed_buffers.h"

namespace livepool {
namespace {

// `taken` is sorted by begin; its ranges may overlap each other.
Bytes BestGap(const Buffer& buffer, const std::vector<PlacedBuffers::Range>& taken) {
  std::optional<Bytes> best;
  Bytes best_gap = std::numeric_limits<Bytes>::max();
  Bytes top = 0;  // no byte of [top, next range's begin) is taken
  for (const PlacedBuffers::Range& range : taken) {
    const Bytes gap = range.begin - top;
    const Bytes offset = AlignUp(top, buffer.alignment);
    if (gap < best_gap && offset <= range.begin - buffer.size) {
      best = offset;
      best_gap = gap;
    }
    top = std::max(top, range.end);
  }
  return best.value_or(AlignUp(top, buffer.alignment));
}

}  // namespace

RuleResult OffsetBestFit(const Problem& problem, const std::vector<std::size_t>& order, Bytes limit) {
  Offsets offsets(problem.buffers.size());
  PlacedBuffers placed(problem);
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    if (!problem.buffers[i].fixed_offset) continue;
    offsets[i] = *problem.buffers[i].fixed_offset;
    placed.Insert(i, offsets[i]);
  }
  for (const std::size_t i : order) {
    const Buffer& buffer = problem.buffers[i];
    if (!buffer.fixed_offset) {
      offsets[i] = BestGap(buffer, placed.During(buffer.lifetime));
      placed.Insert(i, offsets[i]);
    }
    if (offsets[i] + buffer.size >= limit) return std::nullopt;
  }
  return offsets;
}

}  // namespace livepool
