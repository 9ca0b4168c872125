// Several passes that share one arena, one after another: the arena is as high as the highest of them.
//
// Passes that have no buffer in common are planned one by one, with MakePlan. What needs a plan for all is memory that
// several passes know by one address: a cache that keeps its bytes from pass to pass, or an input that is written
// before each pass. It is a buffer with the same id in each problem that has it, and a lifetime of its own in each:
//
//     pass A   |=====cache=====|      pass B   |=====cache=====|      pass C, which may overwrite `input`
//              |input|--...--|               |-input-|--...---|               |=====cache=====|
//
// A cache lives through the whole of every pass that may run while its bytes count, used there or not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "livepool/plan/plan.h"
#include "livepool/plan/planner.h"
#include "livepool/plan/problem.h"
#include "livepool/plan/validate.h"

namespace livepool {

struct SharedArena {
  std::vector<Problem> passes;
  // The ids of buffers that have one offset in all passes that have them. There they agree in size, alignment and fixed
  // offset. Other ids mean another buffer in each pass.
  std::vector<std::int64_t> shared;

  friend bool operator==(const SharedArena&, const SharedArena&) = default;
};

struct SharedArenaPlan {
  std::vector<Plan> plans;  // by pass
  // max over passes of their heights: what the arena must have mapped.
  Bytes height = 0;
  // No plan for all is lower: max over passes of what is known of each alone (Plan::lower_bound, proved_bound).
  Bytes lower_bound = 0;

  bool ProvedOptimal() const { return height == lower_bound; }
  friend bool operator==(const SharedArenaPlan&, const SharedArenaPlan&) = default;
};

// The lowest of several plans. One has all shared buffers at the bottom, largest first, and every pass around them: it
// is always possible, and the best where shared buffers live all the time. In the others the passes are planned one by
// one, and keep the offsets that shared buffers have got before: each of the four passes with the most live bytes is
// the first in one of them, and the others follow by live bytes. A function of its arguments, as MakePlan. Throws
// InvalidInput as MakePlan does for each pass, and if shared buffers of one id differ.
[[nodiscard]] SharedArenaPlan MakeSharedArenaPlan(const SharedArena& arena, const PlannerOptions& options = {});

// Judges by definition, without the planner's code: each pass's plan (validate.h), one offset for each shared buffer
// (PlanFault::kShared), the height (kHeight), one plan for each pass (kMissingOffset), and that lower_bound is at least
// that of each pass and at most the height (kLowerBound). The message names the pass by its number, from 0.
[[nodiscard]] PlanVerdict Validate(const SharedArena& arena, const SharedArenaPlan& plan);

}  // namespace livepool
