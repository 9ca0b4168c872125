// Slot tables and pools for the tests of this folder and of graph_capture.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "allocator/backend/fake_backend.h"
#include "livepool/pool/arena_pool.h"
#include "livepool/pool/slot_table.h"

namespace livepool::testing {

constexpr std::int32_t kUpstream = PlannedAllocation::kUpstream;

// The table of `ops`: for each op its allocations. As high as the highest range.
inline SlotTable TableOf(std::vector<SlotRange> ranges, const std::vector<std::vector<PlannedAllocation>>& ops) {
  SlotTable table;
  table.ranges = std::move(ranges);
  for (const SlotRange& range : table.ranges) table.height = std::max(table.height, range.offset + range.size);
  for (const auto& allocations : ops) {
    table.allocations.insert(table.allocations.end(), allocations.begin(), allocations.end());
    table.first_of_op.push_back(static_cast<std::uint32_t>(table.allocations.size()));
  }
  table.Check();
  return table;
}

// One op for each range, which allocates it.
inline SlotTable OneOpEach(const std::vector<SlotRange>& ranges) {
  std::vector<std::vector<PlannedAllocation>> ops;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ops.push_back({{.size = ranges[i].size, .range = static_cast<std::int32_t>(i)}});
  }
  return TableOf(ranges, ops);
}

// Pools are immortal; a list keeps them in sight of the leak checker.
inline ArenaPool& Immortal(ArenaPool* pool) {
  static auto* all = new std::vector<ArenaPool*>;
  return *all->emplace_back(pool);
}

// A pool on fake memory.
struct FakePool {
  FakeBackend* backend;
  ArenaPool* pool;

  explicit FakePool(const FakeBackend::Options& options = {}, Bytes reserve = 1_MiB,
                    std::function<void()> on_pressure = {}) {
    auto memory = std::make_unique<FakeBackend>(options);
    backend = memory.get();
    pool = &Immortal(new ArenaPool({}, std::move(memory), reserve, std::move(on_pressure)));
  }
};

inline bool AllBytesAre(const std::byte* address, Bytes size, std::byte value) {
  return std::all_of(address, address + size, [&](std::byte each) { return each == value; });
}

}  // namespace livepool::testing
