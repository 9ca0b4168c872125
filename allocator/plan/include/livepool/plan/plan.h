// Offsets for a problem.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "livepool/base/units.h"

namespace livepool {

struct Plan {
  // offsets[i] belongs to problem.buffers[i]; bytes from the arena's base.
  std::vector<Bytes> offsets;
  // max over buffers of offset + size: what the arena must have mapped.
  Bytes height = 0;
  // No packing of this problem is lower. height == lower_bound proves the plan optimal.
  Bytes lower_bound = 0;
  // Which rule made it, e.g. "offset best fit by size".
  std::string algorithm;
  // Where more is known: what fixed buffers force, or what an exhausted search has excluded. 0: nothing.
  Bytes proved_bound = 0;

  bool ProvedOptimal() const { return height == std::max(lower_bound, proved_bound); }
  friend bool operator==(const Plan&, const Plan&) = default;
};

}  // namespace livepool
