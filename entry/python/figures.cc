#include "figures.h"

#include "livepool/torch/figures.h"

namespace livepool {
namespace {

template <typename Stats>
py::dict FiguresOf(const Stats& stats) {
  py::dict dict;
  EachFigure(stats, [&](const char* name, const auto& value) { dict[name] = value; });
  return dict;
}

}  // namespace

py::dict ToDict(const GraphReport& report) {
  py::dict dict;
  dict["ops"] = report.ops;
  dict["buffers"] = report.buffers;
  dict["in_place_buffers"] = report.in_place_buffers;
  dict["sum_bytes"] = report.sum_bytes;
  dict["eager_live_peak_bytes"] = report.eager_live_peak_bytes;
  dict["lower_bound_bytes"] = report.lower_bound_bytes;
  dict["arena_bytes"] = report.arena_bytes;
  dict["algorithm"] = report.algorithm;
  dict["searching"] = report.searching;
  dict["as_saved"] = report.as_saved;
  dict["not_as_saved"] = report.not_as_saved;
  dict["capture_ms"] = report.capture_ms;
  dict["plan_ms"] = report.plan_ms;
  dict["replays"] = report.replays;
  dict["hits"] = report.hits;
  dict["misses"] = report.misses;
  dict["checked"] = report.checked;
  dict["launches"] = report.launches;
  dict["graphs"] = report.graphs;
  dict["not_launched"] = report.not_launched;
  return dict;
}

py::dict ToDict(const ScopeStats& stats) { return FiguresOf(stats); }

py::dict StatsDict() {
  PoolStats sum;
  py::dict devices;
  for (const ArenaPool* pool : AllPools()) {
    const PoolStats stats = pool->Stats();
    sum += stats;
    devices[py::str(pool->device().Name())] = stats.arena_bytes;
  }
  py::dict dict;
  dict["active"] = Installed(DeviceId::Kind::kHost) || Installed(DeviceId::Kind::kCuda);
  dict["cpu"] = Installed(DeviceId::Kind::kHost);
  dict["cuda"] = Installed(DeviceId::Kind::kCuda);
  dict["passes"] = sum.passes;
  dict["hits"] = sum.hits;
  dict["misses"] = sum.misses;
  dict["upstream"] = sum.upstream;
  dict["refused"] = sum.refused;
  dict["live_bytes"] = sum.live_bytes;
  dict["arena_bytes"] = sum.arena_bytes;
  dict["arena_bytes_of"] = devices;
  dict["eager_code"] = FiguresOf(StatsOfEagerCode());
  return dict;
}

py::dict ScopeStatsDict() {
  py::dict dict;
  for (const auto& [name, stats] : StatsOfScopes()) dict[py::str(name)] = ToDict(stats);
  return dict;
}

}  // namespace livepool
