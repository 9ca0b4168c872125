// The LIVEPOOL_* environment variables: one parser, read once.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "livepool/base/units.h"

namespace livepool {

// LIVEPOOL_FILL: what is written into slots.
enum class Fill {
  kNone,  // nothing (default)
  kNan,   // each slot is filled with 0xFF bytes, NaN in every float type, at its death ("poison")
  kZero,  // each slot is zeroed once, before its first use; never a substitute for aten::zero_
};

// LIVEPOOL_CHECK: when a replay is compared with eager, byte for byte.
struct CheckPolicy {
  // 0: never; 1: every replay; n: every n-th. `first` also checks the first replay on a new input.
  int every = 0;
  bool first = true;
  friend bool operator==(const CheckPolicy&, const CheckPolicy&) = default;
};

enum class LogLevel { kOff, kWarning, kInfo };

struct Env {
  bool enabled = true;            // LIVEPOOL=0 turns serving off: everything goes upstream
  bool serve_eager_code = false;  // LIVEPOOL=1: passes of plain eager code are found and served (torch/eager_code.h)
  Fill fill = Fill::kNone;
  CheckPolicy check;
  bool search = true;  // LIVEPOOL_SEARCH=off: no better plan is looked for in the background after a capture
  LogLevel log = LogLevel::kWarning;
  std::optional<Bytes> memory_limit;  // LIVEPOOL_MEMORY_LIMIT: see SetMemoryLimit (torch/install.h)
  std::string report;  // LIVEPOOL_REPORT: where what was done is written to at exit; empty: nowhere (torch/report.h)
  std::string plan_dir;  // LIVEPOOL_PLAN_DIR: where plans of eager code are kept; empty: nowhere (torch/plan_dir.h)
  // One line for each variable that is unknown or has a bad value; the program runs on.
  std::vector<std::string> complaints;
};

// Parses variables given by `names` ("LIVEPOOL_FILL") through `get`. Pure, for tests.
Env ParseEnv(const std::vector<std::string>& names,
             const std::function<std::optional<std::string>(const std::string&)>& get);

// The process's settings, parsed at the first call; complaints are printed to stderr then, once.
const Env& GetEnv();

}  // namespace livepool
