#include "livepool/torch/report.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "livepool/base/env.h"
#include "livepool/pool/forked.h"
#include "livepool/torch/eager_code.h"
#include "livepool/torch/figures.h"
#include "livepool/torch/install.h"
#include "livepool/torch/pass_scope.h"

namespace livepool {
namespace {

using Json = nlohmann::ordered_json;

template <typename Stats>
Json ToJson(const Stats& stats) {
  Json object;
  EachFigure(stats, [&](const char* name, const auto& value) { object[name] = value; });
  return object;
}

Json ToJson(const PoolStats& stats) {
  return {{"passes", stats.passes},
          {"hits", stats.hits},
          {"misses", stats.misses},
          {"upstream", stats.upstream},
          {"refused", stats.refused},
          {"arena_bytes", stats.arena_bytes},
          {"arena_peak_bytes", stats.arena_peak_bytes}};
}

void WriteTo(std::string path) {
  if (const std::size_t at = path.find("%p"); at != std::string::npos) path.replace(at, 2, std::to_string(getpid()));
  errno = 0;
  std::ofstream out(path);
  out << ReportJson() << '\n';
  out.close();
  if (!out) std::cerr << "livepool: the report cannot be written to " << path << ": " << std::strerror(errno) << '\n';
}

// False where livepool was only there.
bool DidSomething() {
  const std::vector<ArenaPool*> pools = AllPools();
  return detail::ServesEagerCode() ||
         std::any_of(pools.begin(), pools.end(), [](const ArenaPool* pool) { return pool->Stats().passes > 0; });
}

void AtExit() {
  if (InForkedChild()) return;
  try {
    if (!GetEnv().report.empty()) WriteTo(GetEnv().report);
    if (GetEnv().log == LogLevel::kInfo && DidSomething()) std::cerr << "livepool: " << ReportLine() << '\n';
  } catch (const std::exception& error) {
    std::cerr << "livepool: no report: " << error.what() << '\n';
  }
}

}  // namespace

std::string ReportJson() {
  const std::vector<ArenaPool*> pools = AllPools();
  Json report = Json::object();
  report["active"] = !pools.empty() && GetEnv().enabled;
  for (const ArenaPool* pool : pools) report[pool->device().Name()] = ToJson(pool->Stats());
  report["eager_code"] = ToJson(StatsOfEagerCode());
  report["scopes"] = Json::object();
  for (const auto& [name, stats] : StatsOfScopes()) report["scopes"][name] = ToJson(stats);
  // A scope may have any bytes for a name; JSON may not.
  return report.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ReportLine() {
  PoolStats sum;
  for (const ArenaPool* pool : AllPools()) sum += pool->Stats();
  std::ostringstream line;
  line << sum.hits << " allocations served from plans, " << sum.misses << " missed, arenas of "
       << FormatBytes(sum.arena_peak_bytes);
  const EagerCodeStats found = StatsOfEagerCode();
  if (found.why_not.empty()) {
    line << "; " << found.passes.passes << " passes found on " << found.threads << " threads, the largest plan is "
         << FormatBytes(found.passes.arena_bytes) << " where recorded passes held up to "
         << FormatBytes(found.passes.recorded_peak_bytes);
  }
  return line.str();
}

void detail::ReportAtExit() {
  static const int registered = GetEnv().report.empty() && GetEnv().log != LogLevel::kInfo ? 0 : std::atexit(&AtExit);
  (void)registered;
}

}  // namespace livepool
