// livepool-plan: packs the buffers of a CSV file, or judges a packing.
#include <algorithm>
#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>
#include <unordered_map>

#include "arguments.h"
#include "livepool/base/error.h"
#include "livepool/plan/csv.h"
#include "livepool/plan/lower_bound.h"
#include "livepool/plan/planner.h"
#include "livepool/plan/validate.h"
#include "report.h"
#include "svg.h"

namespace livepool::plan_tool {
namespace {

enum ExitCode { kDone = 0, kNoPlan = 1, kBadInput = 2 };

// Sizes and offsets in multiples of `alignment`: what is planned, where the table is what is written.
Problem Rounded(const Problem& problem, Bytes alignment, const std::string& name) {
  Problem rounded = problem;
  for (Buffer& buffer : rounded.buffers) {
    if (__builtin_add_overflow(buffer.size, alignment - 1, &buffer.size)) {
      throw InvalidInput(name + ": sizes rounded to multiples of " + std::to_string(alignment) + " pass 64 bits");
    }
    buffer.size = buffer.size / alignment * alignment;
    if (buffer.alignment % alignment != 0) {
      if (alignment % buffer.alignment != 0) {
        throw InvalidInput(name + ": --alignment " + std::to_string(alignment) + " and alignment " +
                           std::to_string(buffer.alignment) + " of a buffer: neither is a multiple of the other");
      }
      buffer.alignment = alignment;
    }
  }
  return rounded;
}

// The offsets that the file `path` gives to the buffers of `table`.
Plan ReadPlan(const std::string& path, const CsvTable& table, const Problem& problem) {
  const CsvTable rows = ReadCsvTableFile(path);
  if (!rows.has_offsets) throw InvalidInput(path + ":1:1: column 'offset' is missing");
  std::unordered_map<std::string, Bytes> offset_of;
  for (std::size_t i = 0; i < rows.ids.size(); ++i) {
    const std::optional<Bytes>& offset = rows.problem.buffers[i].fixed_offset;
    if (!offset) throw InvalidPlan("missing offset: '" + rows.ids[i] + "' has none");
    offset_of.emplace(rows.ids[i], *offset);
  }
  Plan plan{.offsets = {}, .height = 0, .lower_bound = LowerBound(problem), .algorithm = "given"};
  for (std::size_t i = 0; i < table.ids.size(); ++i) {
    const auto found = offset_of.find(table.ids[i]);
    if (found == offset_of.end()) throw InvalidPlan("missing offset: there is no row for '" + table.ids[i] + "'");
    Bytes end = 0;
    if (__builtin_add_overflow(found->second, problem.buffers[i].size, &end)) {
      throw InvalidPlan("beyond 64 bits: '" + table.ids[i] + "' lies at " + std::to_string(found->second));
    }
    plan.offsets.push_back(found->second);
    plan.height = std::max(plan.height, end);
  }
  if (offset_of.size() > table.ids.size()) throw InvalidPlan("it has rows for buffers that the trace does not have");
  return plan;
}

Plan Make(const Problem& problem, const Arguments& arguments, ProgressLine& progress) {
  if (arguments.rule) return MakeBaselinePlan(problem, *arguments.rule);
  PlannerOptions options;
  options.search_nodes = arguments.nodes;
  options.seed = arguments.seed;
  options.threads = arguments.threads;
  options.capacity = arguments.capacity;
  options.time_limit = arguments.time_limit;
  return MakePlan(problem, options, [&](const Plan& plan) {
    progress.Show(plan);
    return true;
  });
}

// What no single row is to blame for: fixed buffers that collide, sizes that with their alignments pass 64 bits.
Plan MakeOrNameFile(const Problem& problem, const Arguments& arguments, ProgressLine& progress) try {
  return Make(problem, arguments, progress);
} catch (const InvalidInput& error) {
  throw InvalidInput(arguments.trace + ": " + error.what());
}

std::ofstream OpenToWrite(const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  if (!file) throw InvalidInput(path + ": cannot be written");
  return file;
}

void Close(std::ofstream& file, const std::string& path) {
  file.close();
  if (!file) throw InvalidInput(path + ": cannot be written");
}

int Run(const Arguments& arguments) {
  const CsvTable table = ReadCsvTableFile(arguments.trace);
  Problem problem = Rounded(table.problem, arguments.alignment, arguments.trace);
  Plan plan;
  double seconds = 0;
  {
    ProgressLine progress;
    plan = arguments.validate.empty() ? MakeOrNameFile(problem, arguments, progress)
                                      : ReadPlan(arguments.validate, table, problem);
    seconds = progress.seconds();
  }
  CheckPlan(problem, plan);
  if (!arguments.output.empty()) {
    std::ofstream file = OpenToWrite(arguments.output);
    WriteCsv(file, table, plan);
    Close(file, arguments.output);
  }
  if (!arguments.svg.empty()) {
    std::ofstream file = OpenToWrite(arguments.svg);
    WriteSvg(file, arguments.trace.substr(arguments.trace.find_last_of('/') + 1), problem, plan, table.ids);
    Close(file, arguments.svg);
  }
  PrintReport(std::cout, arguments.trace, plan, seconds, arguments.json);
  if (arguments.capacity && plan.height > *arguments.capacity) {
    std::cerr << "livepool-plan: ";
    if (arguments.validate.empty()) {
      std::cerr << "no plan within " << *arguments.capacity << " bytes was found; the lowest has ";
    } else {
      std::cerr << "the plan is not within " << *arguments.capacity << " bytes; it has ";
    }
    std::cerr << plan.height << (plan.ProvedOptimal() ? ", and no plan is lower" : "") << '\n';
    return kNoPlan;
  }
  return kDone;
}

}  // namespace
}  // namespace livepool::plan_tool

int main(int argc, char** argv) {
  using livepool::plan_tool::Parsed;
  try {
    const Parsed parsed = livepool::plan_tool::ParseArguments(argc, argv);
    if (parsed.exit_code) return *parsed.exit_code;
    return livepool::plan_tool::Run(parsed.arguments);
  } catch (const livepool::InvalidPlan& error) {
    std::cerr << "livepool-plan: the plan is invalid: " << error.what() << '\n';
    return livepool::plan_tool::kNoPlan;
  } catch (const std::exception& error) {
    std::cerr << "livepool-plan: " << error.what() << '\n';
    return livepool::plan_tool::kBadInput;
  }
}
