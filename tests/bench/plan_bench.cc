// How long planning takes, on the traces and instances beside the sources (LIVEPOOL_SHARED, else ../shared).
//
//   plan/NAME             MakePlan until the bound or 1,048,576 bytes (MiniMalloc's A to K) are reached
//   search/IDEA/off       all of A to K, 100,000 nodes each, without an idea of the search; search/all_on to compare
//   core/on, core/off     hard rectangles among thousands of easy buffers, with and without the search of the core
//
// Counters: ratio = height / lower bound; proved = 1 where no plan is lower; solved = how many within the capacity.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "allocator/plan/cut_rectangle.h"
#include "livepool/plan/csv.h"
#include "livepool/plan/planner.h"
#include "livepool/plan/validate.h"

namespace livepool {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kMiniMallocCapacity = 1'048'576;
constexpr std::int64_t kNodes = 2'000'000;

struct Instance {
  std::string name;
  Problem problem;
  bool minimalloc = false;
};

std::vector<Instance> ReadInstances() {
  const char* const set = std::getenv("LIVEPOOL_SHARED");
  const fs::path shared = set != nullptr ? fs::path(set) : fs::path(LIVEPOOL_SOURCE_DIR) / ".." / "shared";
  std::vector<Instance> instances;
  for (const char* folder : {"traces", "planner_data/minimalloc", "planner_data/idealloc"}) {
    std::vector<fs::path> files;
    std::error_code missing;
    for (const auto& entry : fs::directory_iterator(shared / folder, missing)) {
      if (entry.path().extension() == ".csv") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      const std::string parent = file.parent_path().filename();
      const bool hard = parent == "minimalloc" && file.string().ends_with(".1048576.csv");
      instances.push_back({parent + "/" + file.stem().string(), ReadCsvTableFile(file).problem, hard});
    }
  }
  if (instances.empty()) std::cerr << "plan_bench: no instances in " << shared << "; LIVEPOOL_SHARED can name them\n";
  return instances;
}

void PlanOne(benchmark::State& state, const Instance& instance, const PlannerOptions& options) {
  Plan plan;
  for (auto _ : state) plan = MakePlan(instance.problem, options);
  CheckPlan(instance.problem, plan);
  state.counters["buffers"] = static_cast<double>(plan.offsets.size());
  state.counters["ratio"] = static_cast<double>(plan.height) / static_cast<double>(plan.lower_bound);
  state.counters["proved"] = plan.ProvedOptimal() ? 1 : 0;
}

// Time is what a switch must save; the plans within the capacity are what it must not cost.
void SearchAll(benchmark::State& state, const std::vector<Instance>& instances, const SearchSwitches& switches) {
  int solved = 0;
  for (auto _ : state) {
    solved = 0;
    for (const Instance& instance : instances) {
      if (!instance.minimalloc) continue;
      const Plan plan =
          MakePlan(instance.problem, {.search_nodes = 100'000, .search = switches, .capacity = kMiniMallocCapacity});
      solved += plan.height <= kMiniMallocCapacity ? 1 : 0;
    }
  }
  state.counters["solved"] = solved;
}

// 20,000 nodes each. Counters: ratio = the sum of heights / that of lower bounds; solved = how many at the bound.
void SearchCores(benchmark::State& state, const SearchSwitches& switches) {
  Bytes heights = 0;
  Bytes bounds = 0;
  int solved = 0;
  for (auto _ : state) {
    heights = bounds = solved = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Problem problem = testing::HardCoreAmongMany(seed);
      const Plan plan = MakePlan(problem, {.search_nodes = 20'000, .search = switches});
      heights += plan.height;
      bounds += plan.lower_bound;
      solved += plan.height == plan.lower_bound ? 1 : 0;
    }
  }
  state.counters["ratio"] = static_cast<double>(heights) / static_cast<double>(bounds);
  state.counters["solved"] = solved;
}

void Register(const std::vector<Instance>& instances) {
  for (const Instance& instance : instances) {
    PlannerOptions options{.search_nodes = kNodes};
    if (instance.minimalloc) options.capacity = kMiniMallocCapacity;
    benchmark::RegisterBenchmark(("plan/" + instance.name).c_str(), PlanOne, instance, options)
        ->Unit(benchmark::kMillisecond);
  }
  const std::pair<const char*, bool SearchSwitches::*> ideas[] = {{"bound", &SearchSwitches::bound},
                                                                  {"fewest_answers", &SearchSwitches::fewest_answers},
                                                                  {"split", &SearchSwitches::split},
                                                                  {"ceiling", &SearchSwitches::ceiling},
                                                                  {"twins", &SearchSwitches::twins},
                                                                  {"backjump", &SearchSwitches::backjump},
                                                                  {"nogoods", &SearchSwitches::nogoods},
                                                                  {"restarts", &SearchSwitches::restarts},
                                                                  {"weigh_failures", &SearchSwitches::weigh_failures}};
  benchmark::RegisterBenchmark("core/on", SearchCores, SearchSwitches{})->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("core/off", SearchCores, SearchSwitches{.core = false})->Unit(benchmark::kMillisecond);
  if (instances.empty()) return;
  benchmark::RegisterBenchmark("search/all_on", SearchAll, instances, SearchSwitches{})->Unit(benchmark::kMillisecond);
  for (const auto& [name, idea] : ideas) {
    SearchSwitches switches;
    switches.*idea = false;
    benchmark::RegisterBenchmark(("search/" + std::string(name) + "/off").c_str(), SearchAll, instances, switches)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace livepool

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const std::vector<livepool::Instance> instances = livepool::ReadInstances();
  livepool::Register(instances);
  benchmark::RunSpecifiedBenchmarks();
  return instances.empty() ? 1 : 0;
}
