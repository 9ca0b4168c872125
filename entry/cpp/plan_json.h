// Saved plans as text: JSON lines, the first of which says what the file is.
//
//   {"format": "livepool plans", "version": 1, "torch": "2.11.0", "state": ["0.weight Float[8, 8] on cpu"], "plans": 1}
//   {"signature": "Float[2, 8]", "call": […], "ops": ["aten::gelu -> Float[2, 8]"],
//    "recorded": {"ops": 1, "op": [0], "size": [64], "birth": [1], "death": [-1]}, "calibration": {…},
//    "plan": {"id": […], "birth": […], "death": […], "size": […], "offset": […], "alignment": 64, "height": 0, …}}
#pragma once

#include <string>
#include <vector>

#include "livepool/saved_plans.h"

namespace livepool {

inline constexpr std::int64_t kPlanFormat = 1;  // counts up when an older livepool would misread

struct PlanFileHeader {
  std::int64_t version = kPlanFormat;
  std::string torch;
  std::vector<std::string> state;
  std::int64_t plans = 0;  // lines that follow
};

// Each is one line, without its end. Reading throws InvalidInput, and for an entry what CheckSavedPlan throws; of a
// header whose version is another one only that is read.
std::string ToLine(const PlanFileHeader& header);
std::string ToLine(const SavedPlans::Entry& entry);
PlanFileHeader ReadHeader(const std::string& line);
SavedPlans::Entry ReadEntry(const std::string& line);

}  // namespace livepool
