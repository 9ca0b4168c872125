// Rounding to granules that holds for every size a caller may pass.
#pragma once

#include <limits>

#include "livepool/base/units.h"

namespace livepool {

// The smallest whole number of granules that holds `size` bytes, at least one. Where rounding up would
// overflow, the largest there is, which no backend can reserve: so a bogus size ends as an OutOfMemory.
constexpr Bytes WholeGranules(Bytes size, Bytes granule) {
  constexpr Bytes kLargest = std::numeric_limits<Bytes>::max();
  if (size > kLargest - granule) return kLargest / granule * granule;
  return AlignUp(size > 0 ? size : 1, granule);
}

}  // namespace livepool
