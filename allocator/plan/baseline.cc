#include <algorithm>
#include <string>

#include "check_problem.h"
#include "livepool/base/error.h"
#include "livepool/plan/lower_bound.h"
#include "livepool/plan/planner.h"
#include "offset_best_fit.h"
#include "order.h"
#include "sections.h"
#include "whole_slots.h"

namespace livepool {
namespace {

Offsets Run(const Problem& problem, BaselineRule rule) {
  if (rule == BaselineRule::kWholeSlots) return *WholeSlots(problem);
  const Order order = rule == BaselineRule::kBestFitByBirth ? Order{Key::kBirth, Key::kSize}
                                                            : Order{Key::kSize, Key::kLifetime, Key::kBirth};
  return *OffsetBestFit(problem, SortBuffers(problem, CutIntoSections(problem), order));
}

const char* Name(BaselineRule rule) {
  switch (rule) {
    case BaselineRule::kWholeSlots:
      return "whole slots by birth";
    case BaselineRule::kBestFitByBirth:
      return "offset best fit by birth, size";
    case BaselineRule::kBestFitBySize:
      return "offset best fit by size, lifetime, birth";
  }
  return "";  // not reached
}

}  // namespace

Plan MakeBaselinePlan(const Problem& problem, BaselineRule rule) {
  CheckProblem(problem);
  for (const Buffer& buffer : problem.buffers) {
    if (rule == BaselineRule::kWholeSlots && buffer.fixed_offset) {
      throw InvalidInput("buffer " + std::to_string(buffer.id) + ": whole slots do not honour its fixed offset");
    }
  }
  Plan plan{.offsets = Run(problem, rule), .height = 0, .lower_bound = LowerBound(problem), .algorithm = Name(rule)};
  for (std::size_t i = 0; i < plan.offsets.size(); ++i) {
    plan.height = std::max(plan.height, plan.offsets[i] + problem.buffers[i].size);
  }
  return plan;
}

}  // namespace livepool
