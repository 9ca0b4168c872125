#include "search_problem.h"

#include <algorithm>
#include <numeric>

namespace livepool {

std::optional<SearchProblem> MakeSearchProblem(const Problem& problem, const Sections& sections) {
  if (problem.buffers.size() > kMaxSearchBuffers) return std::nullopt;
  SearchProblem result;
  result.unit = 0;
  for (const Buffer& buffer : problem.buffers) result.unit = std::gcd(result.unit, buffer.size);
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.fixed_offset || result.unit % buffer.alignment != 0) return std::nullopt;
    result.items.push_back({static_cast<std::uint32_t>(sections.ranges[i].begin),
                            static_cast<std::uint32_t>(sections.ranges[i].end), buffer.size / result.unit});
  }
  result.sections = static_cast<std::uint32_t>(sections.count());
  for (const Bytes live : sections.live) result.bound = std::max(result.bound, live / result.unit);
  return result;
}

}  // namespace livepool
