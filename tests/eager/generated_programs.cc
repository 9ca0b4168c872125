#include "eager/generated_programs.h"

#include <algorithm>
#include <map>
#include <utility>

namespace livepool::testing {

namespace {

constexpr Site kLoopDepth = 1024;

}  // namespace

GeneratedProgram::GeneratedProgram(const ProgramOptions& options) : options_(options), random_(options.seed) {
  constexpr int kLayer = 12;  // allocations of a layer, whose sites come again in each layer
  std::vector<Site> sites(kLayer);
  for (Site& site : sites) site = static_cast<Site>(4096 + 16 * Below(400));
  const auto allocation = [&](int i, int left) {
    const int lifetime = Below(10) == 0 ? 1 + Below(40) : 1 + Below(4);
    return Allocation{
        .site = sites[static_cast<std::size_t>(i % kLayer)],
        .size = static_cast<Bytes>(64 * (1 + Below(200))),
        .lifetime = std::min(lifetime, left),
        .freed_at = options.loop == Loop::kFlat ? kLoopDepth : static_cast<Site>(2048 + 16 * (i * 7 % 100))};
  };
  for (int i = 0; i < options.allocations; ++i) skeleton_.push_back(allocation(i, options.allocations - 1 - i));
  for (int i = 0; i < options.outputs; ++i) {
    skeleton_[skeleton_.size() - 1 - static_cast<std::size_t>(i)].lifetime = options.allocations;
  }
  for (int i = 0; i < 30; ++i) branch_.push_back(allocation(i + 5, 4));
  for (Allocation& each : branch_) each.site += 48;
}

EventStream GeneratedProgram::Passes(int count) {
  EventStream events;
  for (int i = 0; i < count; ++i) AppendPass(events);
  return events;
}

void GeneratedProgram::AppendPass(EventStream& events) {
  const Divergences& odds = options_.divergences;
  const int shape = Below(options_.shapes);
  std::vector<Allocation> allocations = skeleton_;
  for (std::size_t i = 0; i < allocations.size(); ++i) {
    if (static_cast<int>(i) >= options_.common_prefix) allocations[i].size *= 1 + shape;
    if (options_.growing > 0 && static_cast<int>(i) % options_.growing == 0) allocations[i].size += 64 * passes_;
  }
  if (Chance(odds.branches)) {
    const auto at = allocations.begin() + static_cast<std::ptrdiff_t>(allocations.size() / 3);
    allocations.insert(at, branch_.begin(), branch_.end());
  }
  ++passes_;
  const int throws_at = Chance(odds.throws) ? Below(static_cast<int>(allocations.size())) : -1;

  events.push_back(Begin(shape));
  std::multimap<int, std::pair<std::int64_t, Site>> deaths;  // after so many allocations: what, and from which depth
  const auto allocate = [&](int now, const Allocation& each) {
    const std::int64_t id = next_id_++;
    const Bytes size = Chance(odds.resized) ? each.size + 64 * (1 + Below(50)) : each.size;
    events.push_back(Alloc(id, each.site, size));
    if (Chance(odds.kept)) {
      kept_.emplace_back(1 + Below(5), id);
    } else {
      const int late = Chance(odds.freed_late) ? 1 + Below(60) : 0;
      deaths.emplace(now + each.lifetime + late, std::pair(id, each.freed_at));
    }
  };
  int now = 0;
  for (; now < static_cast<int>(allocations.size()) && now != throws_at; ++now) {
    while (!deaths.empty() && deaths.begin()->first <= now) {
      events.push_back(Free(deaths.begin()->second.first, deaths.begin()->second.second));
      deaths.erase(deaths.begin());
    }
    if (Chance(odds.inserted)) {
      allocate(now, {.site = static_cast<Site>(4096 + 16 * Below(400)),
                     .size = 64 * (1 + Below(300)),
                     .lifetime = 2,
                     .freed_at = 3000});
    }
    if (!Chance(odds.skipped)) allocate(now, allocations[static_cast<std::size_t>(now)]);
  }
  while (!deaths.empty() && deaths.begin()->first <= now) {
    events.push_back(Free(deaths.begin()->second.first, deaths.begin()->second.second));
    deaths.erase(deaths.begin());
  }
  events.push_back(now == throws_at ? Throw() : End());
  const Site outputs_freed_at = options_.loop == Loop::kKeeps ? kDeep : kLoopDepth;
  for (const std::int64_t id : outputs_) events.push_back(Free(id, outputs_freed_at));
  outputs_.clear();
  for (const auto& [death, freed] : deaths) outputs_.push_back(freed.first);
  if (options_.loop == Loop::kSteps) AppendSteps(events);
  for (auto& [passes, id] : kept_) {
    if (--passes == 0) events.push_back(Free(id, outputs_freed_at));
  }
  std::erase_if(kept_, [](const auto& each) { return each.first == 0; });
}

// y = softmax(output); i = argmax(y); ...
void GeneratedProgram::AppendSteps(EventStream& events) {
  std::vector<std::int64_t> before = std::exchange(steps_, {});
  before.resize(4, -1);
  for (int i = 0; i < 4; ++i) {
    const std::int64_t id = next_id_++;
    events.push_back(Alloc(id, static_cast<Site>(3000 + 64 * i), 64 * (1 + i)));
    if (before[static_cast<std::size_t>(i)] >= 0)
      events.push_back(Free(before[static_cast<std::size_t>(i)], kLoopDepth));
    steps_.push_back(id);
  }
}

}  // namespace livepool::testing
