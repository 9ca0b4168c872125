#include "livepool/plan/lower_bound.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "livepool/base/error.h"

namespace livepool {

Bytes LowerBound(const Problem& problem) {
  // Pairs sort by time, then by change: at one time, deaths (negative) come before births.
  std::vector<std::pair<Time, Bytes>> changes;
  changes.reserve(2 * problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) {
    changes.emplace_back(buffer.lifetime.birth, buffer.size);
    changes.emplace_back(buffer.lifetime.death, -buffer.size);
  }
  std::sort(changes.begin(), changes.end());

  Bytes live = 0;
  Bytes peak = 0;
  for (const auto& [time, change] : changes) {
    if (__builtin_add_overflow(live, change, &live)) {
      throw InvalidInput("the bytes alive at time " + std::to_string(time) + " pass 64 bits");
    }
    peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace livepool
