#include "livepool/torch/report.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>
#include <vector>

#include "livepool/base/env.h"
#include "livepool/pool/forked.h"
#include "livepool/torch/eager_code.h"
#include "livepool/torch/install.h"
#include "livepool/torch/pass_scope.h"

namespace livepool {
namespace {

std::string Quoted(const std::string& text) {
  std::ostringstream out;
  out << '"';
  for (const char each : text) {
    if (each == '"' || each == '\\') {
      out << '\\' << each;
    } else if (static_cast<unsigned char>(each) < 0x20) {
      char escaped[7];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(each));
      out << escaped;
    } else {
      out << each;
    }
  }
  out << '"';
  return out.str();
}

// Writes a JSON object member by member.
class Object {
 public:
  Object& Add(const std::string& name, const std::string& json) {
    members_ += (members_.empty() ? "" : ", ") + Quoted(name) + ": " + json;
    return *this;
  }
  Object& Add(const std::string& name, const char* json) { return Add(name, std::string(json)); }
  Object& Add(const std::string& name, std::int64_t number) { return Add(name, std::to_string(number)); }
  std::string Text() const { return "{" + members_ + "}"; }

 private:
  std::string members_;
};

void AddTo(Object& object, const ScopeStats& stats) {
  object.Add("passes", stats.passes)
      .Add("hits", stats.hits)
      .Add("misses", stats.misses)
      .Add("upstream", stats.upstream)
      .Add("divergences", stats.divergences)
      .Add("kinds", stats.kinds)
      .Add("units", stats.units)
      .Add("arena_bytes", stats.arena_bytes)
      .Add("lower_bound_bytes", stats.lower_bound_bytes)
      .Add("recorded_peak_bytes", stats.recorded_peak_bytes);
}

std::string PoolJson(const PoolStats& stats) {
  return Object()
      .Add("passes", stats.passes)
      .Add("hits", stats.hits)
      .Add("misses", stats.misses)
      .Add("upstream", stats.upstream)
      .Add("refused", stats.refused)
      .Add("arena_bytes", stats.arena_bytes)
      .Add("arena_peak_bytes", stats.arena_peak_bytes)
      .Text();
}

std::string EagerCodeJson() {
  const EagerCodeStats stats = StatsOfEagerCode();
  Object object;
  object.Add("active", stats.why_not.empty() ? "true" : "false").Add("why_not", Quoted(stats.why_not));
  object.Add("threads", stats.threads)
      .Add("serving", stats.serving)
      .Add("looking", stats.looking)
      .Add("asleep", stats.asleep)
      .Add("allocations", stats.allocations);
  AddTo(object, stats.passes);
  return object.Text();
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
  Object report;
  Object scopes;
  const std::vector<ArenaPool*> pools = AllPools();
  report.Add("active", pools.empty() || !GetEnv().enabled ? "false" : "true");
  for (const ArenaPool* pool : pools) report.Add(pool->device().Name(), PoolJson(pool->Stats()));
  report.Add("eager_code", EagerCodeJson());
  for (const auto& [name, stats] : StatsOfScopes()) {
    Object scope;
    AddTo(scope, stats);
    scopes.Add(name, scope.Text());
  }
  return report.Add("scopes", scopes.Text()).Text();
}

std::string ReportLine() {
  PoolStats sum;
  for (const ArenaPool* pool : AllPools()) {
    const PoolStats stats = pool->Stats();
    sum.passes += stats.passes;
    sum.hits += stats.hits;
    sum.misses += stats.misses;
    sum.arena_peak_bytes += stats.arena_peak_bytes;
  }
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
