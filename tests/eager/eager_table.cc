// Prints what the plans of scopes hit: one row for each generated program, and for each event stream that is named.
// Then what is hit where the passes have to be found.
//     livepool-eager-table [FILE...]
// Occurrence n: the passes that are the n-th of their shape. Figures are the share of the allocations that die inside
// the pass (of their bytes, in brackets) which came from a slot. Exits with 1 if a live byte was handed out twice.

#include <algorithm>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <span>
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
    {"every 6th size grows", {.growing = 6}},
    {"never the same size", {.divergences = {.resized = 1}}},
};

// Only finding passes depends on the loop around them.
const Program kLoops[] = {
    {"3 shapes, the loop has steps", {.shapes = 3, .loop = Loop::kSteps}},
    {"3 shapes, the loop keeps results", {.shapes = 3, .loop = Loop::kKeeps}},
    {"3 shapes, all in the loop", {.shapes = 3, .loop = Loop::kFlat}},
};

std::string Percent(const HitCount& count) {
  if (count.plannable == 0) return "";
  std::ostringstream out;
  out << std::fixed << std::setprecision(1) << 100 * count.Share() << " (" << 100 * count.ByteShare() << ")";
  return out.str();
}

void PrintFoundRow(const std::string& name, const SimulationResult& scoped, const SimulationResult& found) {
  std::cout << "| " << name << " | " << scoped.scope.passes << " | " << Percent(scoped.SecondHalf()) << " | "
            << Percent(found.SecondHalf()) << " | " << found.scope.passes << " | " << FormatBytes(scoped.arena_peak)
            << " | " << FormatBytes(found.arena_peak) << " | " << found.overlaps << " |\n";
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

SimulationResult Simulate(const EventStream& events, Bytes alignment, Passes passes) {
  Simulator simulator(alignment, passes);
  simulator.Run(events);
  return simulator.Result();
}

struct Stream {
  std::string name;
  EventStream events;
};

// Returns the overlaps.
std::int64_t PrintScoped(const std::vector<Stream>& streams, Bytes alignment) {
  std::cout << "| program | passes | 2nd, % | 3rd, % | 4th on, % | plans | largest plan | / bound | arenas' peak | "
               "overlaps |\n"
               "|---|---|---|---|---|---|---|---|---|---|\n";
  std::int64_t overlaps = 0;
  for (const Stream& each : streams) {
    const SimulationResult result = Simulate(each.events, alignment, Passes::kScoped);
    PrintRow(each.name, result);
    overlaps += result.overlaps;
  }
  return overlaps;
}

std::int64_t PrintFound(const std::vector<Stream>& streams, Bytes alignment) {
  std::cout
      << "\n| program | passes | scoped, 2nd half, % | found, 2nd half, % | passes found | arenas' peak, scoped | "
         "found | overlaps |\n"
         "|---|---|---|---|---|---|---|---|\n";
  std::int64_t overlaps = 0;
  for (const Stream& each : streams) {
    const SimulationResult found = Simulate(each.events, alignment, Passes::kFound);
    PrintFoundRow(each.name, Simulate(each.events, alignment, Passes::kScoped), found);
    overlaps += found.overlaps;
  }
  return overlaps;
}

// False for a recording of lifetimes alone, in which nobody could find the passes.
bool HasSites(const Stream& stream) {
  return std::any_of(stream.events.begin(), stream.events.end(), [](const StreamEvent& event) {
    return event.kind == StreamEvent::Kind::kAlloc && event.site > 0;
  });
}

std::vector<Stream> Generated(std::span<const Program> programs) {
  std::vector<Stream> streams;
  for (const Program& each : programs) streams.push_back({each.name, GeneratedProgram(each.options).Passes(150)});
  return streams;
}

int Main(const std::vector<std::string>& files) {
  std::vector<Stream> streams;
  for (const std::string& file : files) {
    std::ifstream in(file);
    if (!in) throw InvalidInput(file + ": cannot be read");
    streams.push_back({file.substr(file.find_last_of('/') + 1), ReadEvents(in, file)});
  }
  if (!files.empty()) {
    const std::int64_t overlaps = PrintScoped(streams, 512);
    std::erase_if(streams, [](const Stream& stream) { return !HasSites(stream); });
    return overlaps + (streams.empty() ? 0 : PrintFound(streams, 512)) == 0 ? 0 : 1;
  }
  streams = Generated(kGenerated);
  std::int64_t overlaps = PrintScoped(streams, 64);
  std::vector<Stream> loops = Generated(kLoops);
  loops.insert(loops.begin(), streams.begin(), streams.end());
  overlaps += PrintFound(loops, 64);
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
