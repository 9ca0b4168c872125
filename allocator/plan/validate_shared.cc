#include <algorithm>
#include <cstddef>
#include <string>

#include "livepool/plan/shared_arena.h"

namespace livepool {

PlanVerdict Validate(const SharedArena& arena, const SharedArenaPlan& plan) {
  if (plan.plans.size() != arena.passes.size()) {
    return {PlanFault::kMissingOffset, "missing plan: " + std::to_string(plan.plans.size()) + " plans for " +
                                           std::to_string(arena.passes.size()) + " passes"};
  }
  Bytes height = 0;
  Bytes bound = 0;
  for (std::size_t pass = 0; pass < arena.passes.size(); ++pass) {
    PlanVerdict verdict = Validate(arena.passes[pass], plan.plans[pass]);
    if (!verdict.ok()) {
      verdict.message = "pass " + std::to_string(pass) + ": " + verdict.message;
      return verdict;
    }
    height = std::max(height, plan.plans[pass].height);
    bound = std::max(bound, plan.plans[pass].lower_bound);
  }
  for (const std::int64_t id : arena.shared) {
    const Bytes* first = nullptr;
    for (std::size_t pass = 0; pass < arena.passes.size(); ++pass) {
      for (std::size_t i = 0; i < arena.passes[pass].buffers.size(); ++i) {
        if (arena.passes[pass].buffers[i].id != id) continue;
        const Bytes& offset = plan.plans[pass].offsets[i];
        if (first == nullptr) first = &offset;
        if (offset == *first) continue;
        return {PlanFault::kShared, "shared: buffer " + std::to_string(id) + " lies at " + std::to_string(offset) +
                                        " in pass " + std::to_string(pass) + " but at " + std::to_string(*first) +
                                        " before"};
      }
    }
  }
  if (plan.height != height) {
    return {PlanFault::kHeight, "height: the plan says " + std::to_string(plan.height) + " but the highest pass has " +
                                    std::to_string(height)};
  }
  if (plan.lower_bound < bound || plan.lower_bound > height) {
    return {PlanFault::kLowerBound, "lower bound: the plan says " + std::to_string(plan.lower_bound) +
                                        ", not within [" + std::to_string(bound) + ", " + std::to_string(height) + "]"};
  }
  return {};
}

}  // namespace livepool
