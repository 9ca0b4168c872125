#include "livepool/pool/slot_table.h"

#include <string>

#include "livepool/base/error.h"

namespace livepool {

void SlotTable::Check() const {
  const auto fail = [](const std::string& what) { throw InvalidPlan("slot table: " + what); };
  if (first_of_op.empty() || first_of_op.front() != 0 || first_of_op.back() != allocations.size()) {
    fail("first_of_op does not cover the allocations");
  }
  for (std::size_t i = 1; i < first_of_op.size(); ++i) {
    if (first_of_op[i] < first_of_op[i - 1]) fail("first_of_op descends at op " + std::to_string(i));
  }
  for (const SlotRange& range : ranges) {
    if (range.offset < 0 || range.size <= 0 || range.offset > height - range.size) {
      fail("range at " + std::to_string(range.offset) + " leaves the arena of " + std::to_string(height) + " bytes");
    }
  }
  for (const PlannedAllocation& allocation : allocations) {
    if (allocation.range == PlannedAllocation::kUpstream) continue;
    if (allocation.range < 0 || static_cast<std::size_t>(allocation.range) >= ranges.size()) fail("no such range");
    if (allocation.size <= 0) fail("an allocation of nothing");
    if (allocation.size > ranges[static_cast<std::size_t>(allocation.range)].size) fail("allocation exceeds its range");
  }
}

}  // namespace livepool
