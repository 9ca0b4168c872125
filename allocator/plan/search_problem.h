// What the depth-first search works on: ranges of sections, and sizes in units.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "livepool/base/units.h"
#include "livepool/plan/problem.h"
#include "sections.h"

namespace livepool {

// Sizes in bytes are large numbers with a common divisor, e.g. the arena's alignment. Divided by it they fit in
// narrow integers, of which the processor adds many at a time.
struct SearchProblem {
  struct Item {
    std::uint32_t begin = 0;  // sections [begin, end)
    std::uint32_t end = 0;
    std::int64_t size = 0;  // in units

    bool Covers(std::uint32_t section) const { return begin <= section && section < end; }
    bool Overlaps(std::uint32_t first, std::uint32_t last) const { return begin < last && first < end; }
    friend bool operator==(const Item&, const Item&) = default;
  };
  std::vector<Item> items;  // by buffer, as in problem.buffers
  std::uint32_t sections = 0;
  std::int64_t bound = 0;  // the lower bound, in units
  Bytes unit = 1;

  // The largest capacity, in units, that bytes hold.
  std::int64_t UnitsIn(Bytes bytes) const { return bytes / unit; }
};

// Nothing if the search does not handle the problem: if a buffer has a fixed offset, if an alignment does not divide
// the unit (then not all multiples of the unit are allowed), or if there are more buffers than kMaxSearchBuffers.
[[nodiscard]] std::optional<SearchProblem> MakeSearchProblem(const Problem& problem, const Sections& sections);

// A search holds, on its way down, one list of unplaced buffers for each placed one.
inline constexpr std::size_t kMaxSearchBuffers = 4096;

}  // namespace livepool
