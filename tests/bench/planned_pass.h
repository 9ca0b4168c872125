// A pass to serve, for the benchmarks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "livepool/base/units.h"
#include "livepool/plan/planner.h"
#include "livepool/pool/slot_table.h"

namespace livepool {

// A pass of 400 ops with one allocation each. Most buffers live for three ops, every eighth for forty, as
// residuals do.
struct PlannedPass {
  static constexpr std::size_t kSlots = 400;

  SlotTable table;
  std::vector<Bytes> sizes;                      // as requested
  std::vector<std::vector<std::size_t>> deaths;  // after op i, these allocations die

  explicit PlannedPass(Bytes alignment) : deaths(kSlots) {
    std::mt19937_64 random(1);
    Problem problem;
    for (std::size_t i = 0; i < kSlots; ++i) {
      const std::size_t death = std::min(i + (i % 8 == 0 ? 40 : 2), kSlots - 1);
      const Bytes size = static_cast<Bytes>(1 + random() % 4096);
      sizes.push_back(size);
      deaths[death].push_back(i);
      problem.buffers.push_back({.id = static_cast<std::int64_t>(i),
                                 .lifetime = {static_cast<Time>(i), static_cast<Time>(death) + 1},
                                 .size = AlignUp(size, alignment),
                                 .alignment = alignment});
    }
    const Plan plan = MakePlan(problem);
    table.height = plan.height;
    for (std::size_t i = 0; i < kSlots; ++i) {
      table.first_of_op.push_back(static_cast<std::uint32_t>(i + 1));
      table.ranges.push_back({.offset = plan.offsets[i], .size = problem.buffers[i].size});
      table.allocations.push_back({.size = problem.buffers[i].size, .range = static_cast<std::int32_t>(i)});
    }
    table.Check();
  }
};

}  // namespace livepool
