#include "livepool/plan/planner.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "check_problem.h"
#include "livepool/base/error.h"
#include "livepool/plan/lower_bound.h"
#include "portfolio.h"
#include "range_tree.h"
#include "rule.h"
#include "sections.h"

namespace livepool {
namespace {

Bytes Height(const Problem& problem, const Offsets& offsets) {
  Bytes height = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    height = std::max(height, offsets[i] + problem.buffers[i].size);
  }
  return height;
}

// The first buffer (by id) with a fixed offset, for messages.
const Buffer* FirstFixed(const Problem& problem) {
  const Buffer* first = nullptr;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed_offset && (first == nullptr || buffer.id < first->id)) first = &buffer;
  }
  return first;
}

// No plan is lower: the lower bound, or the top of the highest fixed buffer.
Bytes GoodEnough(const Problem& problem, Bytes lower_bound) {
  Bytes height = lower_bound;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed_offset) height = std::max(height, *buffer.fixed_offset + buffer.size);
  }
  return height;
}

// Problems whose answer is plain.
std::optional<Plan> Shortcut(const Problem& problem) {
  if (problem.buffers.empty()) return Plan{.offsets = {}, .height = 0, .lower_bound = 0, .algorithm = "empty"};
  if (problem.buffers.size() > 1) return std::nullopt;
  const Buffer& only = problem.buffers.front();
  const Bytes offset = only.fixed_offset.value_or(0);
  return Plan{.offsets = {offset}, .height = offset + only.size, .lower_bound = only.size, .algorithm = "one buffer"};
}

}  // namespace

Plan MakePlan(const Problem& problem, const PlannerOptions& options) {
  if (options == PlannerOptions{.skyline = false, .offset_best_fit = false, .whole_slots = false}) {
    throw InvalidInput("PlannerOptions: every rule is off; leave at least one on");
  }
  CheckProblem(problem);
  if (std::optional<Plan> plan = Shortcut(problem)) return *std::move(plan);

  const Buffer* const fixed = FirstFixed(problem);
  const Bytes lower_bound = LowerBound(problem);
  const Bytes good_enough = GoodEnough(problem, lower_bound);
  const Sections sections = CutIntoSections(problem);
  const RangeTree tree(sections);

  std::optional<Plan> best;
  for (const Rule& rule : Portfolio(problem, sections, tree, options)) {
    RuleResult offsets = rule.run(best ? best->height : kNoLimit);
    if (!offsets) continue;
    const Bytes height = Height(problem, *offsets);
    best = Plan{*std::move(offsets), height, lower_bound, rule.name};
    if (height == good_enough) break;
  }
  if (!best) {
    // Without fixed offsets the first rule runs without a limit, and gives a plan. So there is one.
    throw InvalidInput("buffer " + std::to_string(fixed->id) +
                       ": it has a fixed offset, which only PlannerOptions::offset_best_fit honours; turn it on");
  }
  return *std::move(best);
}

}  // namespace livepool
