// The plan as the pool serves it: which allocation of which op takes which range.
#pragma once

#include <cstdint>
#include <vector>

#include "livepool/base/units.h"

namespace livepool {

using OpIndex = std::int32_t;

// What the plan says of one allocation. Its key is (op, n-th allocation inside the op): a changed
// workspace costs one miss and no drift.
struct PlannedAllocation {
  static constexpr std::int32_t kUpstream = -1;  // not planned: escapes, or could not be followed

  Bytes size = 0;                  // rounded to the arena's alignment
  std::int32_t range = kUpstream;  // index into SlotTable::ranges
  bool in_place = false;           // joins the live owner of `range` (see Note [In-place slots] in pass.cc)

  friend bool operator==(const PlannedAllocation&, const PlannedAllocation&) = default;
};

// A byte range, relative to the arena's base.
struct SlotRange {
  Bytes offset = 0;
  Bytes size = 0;

  friend bool operator==(const SlotRange&, const SlotRange&) = default;
};

// A plain value, independent of any arena; PlannedArena::Bind puts it at addresses.
// Invariant: first_of_op has ops + 1 entries, ascending; op i owns allocations
// [first_of_op[i], first_of_op[i + 1]).
struct SlotTable {
  std::vector<std::uint32_t> first_of_op{0};
  std::vector<PlannedAllocation> allocations;
  std::vector<SlotRange> ranges;
  Bytes height = 0;

  std::size_t ops() const { return first_of_op.size() - 1; }
  // Throws InvalidPlan if an index is out of range, a range leaves [0, height), or an allocation is
  // larger than its range.
  void Check() const;
  friend bool operator==(const SlotTable&, const SlotTable&) = default;
};

}  // namespace livepool
