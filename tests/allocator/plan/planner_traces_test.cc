// Plans for allocator traces of real models. They are not part of the sources: the folder that the environment
// variable LIVEPOOL_SHARED names (else ../shared beside the sources) holds them as traces/*.csv.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "livepool/plan/csv.h"
#include "livepool/plan/planner.h"
#include "livepool/plan/validate.h"

namespace livepool {
namespace {

namespace fs = std::filesystem;

fs::path TraceFolder() {
  const char* const shared = std::getenv("LIVEPOOL_SHARED");
  return (shared != nullptr ? fs::path(shared) : fs::path(LIVEPOOL_SOURCE_DIR) / ".." / "shared") / "traces";
}

// Sorted by name.
std::vector<fs::path> Traces() {
  std::vector<fs::path> traces;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(TraceFolder(), missing)) {
    if (entry.path().extension() == ".csv") traces.push_back(entry.path());
  }
  std::sort(traces.begin(), traces.end());
  return traces;
}

// Each of them can be packed at its lower bound: that is the bar.
TEST(PlannerTraces, ArePackedAtTheLowerBound) {
  const std::vector<fs::path> traces = Traces();
  if (traces.empty()) GTEST_SKIP() << "no traces in " << TraceFolder() << "; LIVEPOOL_SHARED can name their parent";
  for (const fs::path& path : traces) {
    SCOPED_TRACE(path.filename().string());
    const Problem problem = ReadCsvFile(path.string());
    const Plan plan = MakePlan(problem);
    EXPECT_EQ(Validate(problem, plan).message, "");
    EXPECT_EQ(plan.height, plan.lower_bound) << plan.algorithm;
  }
}

// Every rule alone, also those that the planner did not need.
TEST(PlannerTraces, EveryRuleGivesValidPlans) {
  const std::vector<fs::path> traces = Traces();
  if (traces.empty()) GTEST_SKIP() << "no traces in " << TraceFolder() << "; LIVEPOOL_SHARED can name their parent";
  for (const fs::path& path : traces) {
    SCOPED_TRACE(path.filename().string());
    const Problem problem = ReadCsvFile(path.string());
    for (const PlannerOptions& options : {PlannerOptions{.offset_best_fit = false, .whole_slots = false},
                                          PlannerOptions{.skyline = false, .whole_slots = false},
                                          PlannerOptions{.skyline = false, .offset_best_fit = false}}) {
      EXPECT_EQ(Validate(problem, MakePlan(problem, options)).message, "");
    }
  }
}

}  // namespace
}  // namespace livepool
