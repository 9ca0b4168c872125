// The command line of livepool-plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "livepool/base/units.h"
#include "livepool/plan/planner.h"

namespace livepool::plan_tool {

struct Arguments {
  std::string trace;
  std::string output;    // empty: the plan is not written
  std::string validate;  // a plan to judge, in place of making one
  std::string svg;
  bool json = false;
  Bytes alignment = 1;
  std::optional<Bytes> capacity;
  double time_limit = 10;
  std::int64_t nodes = INT64_MAX;
  int threads = 1;
  std::uint64_t seed = 0;
  std::optional<BaselineRule> rule;  // this one alone
};

// What the program does: run with these arguments, or exit at once with that code (after --help or an error, which
// has been printed).
struct Parsed {
  Arguments arguments;
  std::optional<int> exit_code;
};

[[nodiscard]] Parsed ParseArguments(int argc, const char* const* argv);

}  // namespace livepool::plan_tool
