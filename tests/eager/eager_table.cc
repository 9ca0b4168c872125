// Prints what the plans of scopes hit: one row for each generated program, and for each event stream that is named.
//     livepool-eager-table [FILE...]
// Occurrence n: the passes that are the n-th of their shape. Figures are the share of the allocations that die inside
// the pass (of their bytes, in brackets) which came from a slot. Exits with 1 if a live byte was handed out twice.

#include <fstream>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "eager/generated_programs.h"
#include "eager/simulator.h"
#include "livepool/base/error.h"

namespace livepool::testing {
namespace {

struct Program {
  std::string name;
  ProgramOptions options;
};

const Program kGenerated[] = {
    {"one shape", {}},
    {"6 shapes at random", {.shapes = 6}},
    {"4 shapes, 20 allocations alike", {.shapes = 4, .common_prefix = 20}},
    {"0.5 % skipped", {.shapes = 3, .divergences = {.skipped = 0.005}}},
    {"0.5 % inserted", {.shapes = 3, .divergences = {.inserted = 0.005}}},
    {"0.5 % resized", {.shapes = 3, .divergences = {.resized = 0.005}}},
    {"1 % freed late", {.shapes = 3, .divergences = {.freed_late = 0.01}}},
    {"0.03 % kept for passes", {.shapes = 3, .divergences = {.kept = 0.0003}}},
    {"5 % of the passes throw", {.shapes = 3, .divergences = {.throws = 0.05}}},
    {"30 % of the passes branch", {.shapes = 3, .divergences = {.branches = 0.3}}},
    {"all of it, twice as often",
     {.shapes = 3,
      .divergences = {.skipped = 0.01,
                      .inserted = 0.01,
                      .resized = 0.01,
                      .freed_late = 0.02,
                      .kept = 0.0006,
                      .throws = 0.1,
                      .branches = 0.6}}},
    {"never the same size", {.divergences = {.resized = 1}}},
};

std::string Percent(const HitCount& count) {
  if (count.plannable == 0) return "";
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << 100 * count.Share() << " (" << 100 * count.ByteShare() << ")";
  return out.str();
}

void PrintRow(const std::string& name, const SimulationResult& result) {
  const auto at = [&](std::size_t i) { return i < result.by_occurrence.size() ? result.by_occurrence[i] : HitCount{}; };
  const ScopeStats& scope = result.scope;
  std::ostringstream ratio;
  if (scope.lower_bound_bytes > 0) {
    ratio << std::fixed << std::setprecision(4)
          << static_cast<double>(scope.arena_bytes) / static_cast<double>(scope.lower_bound_bytes);
  }
  std::cout << "| " << name << " | " << scope.passes << " | " << Percent(at(1)) << " | " << Percent(at(2)) << " | "
            << Percent(result.From(4)) << " | " << scope.units << " | " << FormatBytes(scope.arena_bytes) << " | "
            << ratio.str() << " | " << FormatBytes(result.arena_peak) << " | " << result.overlaps << " |\n";
}

int Main(const std::vector<std::string>& files) {
  std::cout << "| program | passes | 2nd, % | 3rd, % | 4th on, % | plans | largest plan | / bound | arenas' peak | "
               "overlaps |\n"
               "|---|---|---|---|---|---|---|---|---|---|\n";
  std::int64_t overlaps = 0;
  const auto run = [&](const std::string& name, Bytes alignment, const EventStream& events) {
    Simulator simulator(alignment);
    simulator.Run(events);
    PrintRow(name, simulator.Result());
    overlaps += simulator.Result().overlaps;
  };
  if (files.empty()) {
    for (const Program& each : kGenerated) run(each.name, 64, GeneratedProgram(each.options).Passes(150));
  }
  for (const std::string& file : files) {
    std::ifstream in(file);
    if (!in) throw InvalidInput(file + ": cannot be read");
    run(file.substr(file.find_last_of('/') + 1), 512, ReadEvents(in, file));
  }
  return overlaps == 0 ? 0 : 1;
}

}  // namespace
}  // namespace livepool::testing

int main(int argc, char** argv) {
  try {
    return livepool::testing::Main({argv + 1, argv + argc});
  } catch (const livepool::Error& error) {
    std::cerr << "livepool-eager-table: " << error.what() << '\n';
    return 2;
  }
}
