// The recorded allocations of one pass of plain eager code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "livepool/eager/key.h"

namespace livepool {

// An index into a pass's sequence of allocations.
using Position = std::uint32_t;

// Note [Time in allocations]
// The clock of a pass counts its allocations: one that is freed when n allocations have been made has death n. So
// its lifetime is [i, n) with i < n, and allocation n may have its bytes. It is exact: between two allocations the
// order of the frees does not matter.
struct PassRecord {
  static constexpr Position kAlive = std::numeric_limits<Position>::max();  // as death: not freed inside the pass

  std::vector<Key> keys;
  std::vector<Position> deaths;

  std::size_t size() const { return keys.size(); }
  std::uint64_t Hash() const;  // of the keys
  Bytes LivePeak() const;      // the most bytes that were alive at once
  friend bool operator==(const PassRecord&, const PassRecord&) = default;
};

std::uint64_t HashOf(const std::vector<Key>& keys);

}  // namespace livepool
