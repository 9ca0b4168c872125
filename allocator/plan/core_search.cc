#include "core_search.h"

#include <algorithm>
#include <utility>

#include "portfolio.h"
#include "rule.h"
#include "search_problem.h"

namespace livepool {
namespace {

Bytes Top(const Problem& problem, const Offsets& offsets) {
  Bytes top = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) top = std::max(top, offsets[i] + problem.buffers[i].size);
  return top;
}

class CoreSearch {
 public:
  CoreSearch(const Problem& problem, const Sections& sections, const RangeTree& tree, const SearchTask& task,
             const PlannerOptions& options)
      : sections_(sections), tree_(tree), task_(task), options_(options), around_(problem), best_(task.best_height) {
    core_ = CoreBuffers(sections, task.best_height, kMaxSearchBuffers);
    for (const std::size_t i : core_) core_problem_.buffers.push_back(problem.buffers[i]);
  }

  SearchResult Run() {
    if (core_.empty()) return {};
    SearchTask core_task = task_;
    core_task.improved = [this](const Offsets& core_offsets) { PutOthersAround(core_offsets); };
    SearchResult result = SearchBelow(core_problem_, CutIntoSections(core_problem_), core_task);
    result.offsets = std::move(found_);
    return result;  // what excludes a packing of the core excludes one of everything
  }

 private:
  void PutOthersAround(const Offsets& core_offsets) {
    for (std::size_t k = 0; k < core_.size(); ++k) around_.buffers[core_[k]].fixed_offset = core_offsets[k];
    const Bytes core_top = Top(core_problem_, core_offsets);
    for (const Rule& rule : Portfolio(around_, sections_, tree_, core_top, options_)) {
      if (best_ <= core_top || (task_.stop && task_.stop())) return;
      if (RuleResult offsets = rule.run(best_)) {
        best_ = Top(around_, *offsets);
        found_ = *std::move(offsets);
        if (task_.improved) task_.improved(*found_);
        return;
      }
    }
  }

  const Sections& sections_;
  const RangeTree& tree_;
  const SearchTask& task_;
  const PlannerOptions& options_;
  std::vector<std::size_t> core_;
  Problem core_problem_;
  Problem around_;  // all buffers; those of the core are fixed where they were found last
  Bytes best_;
  std::optional<Offsets> found_;
};

}  // namespace

std::vector<std::size_t> CoreBuffers(const Sections& sections, Bytes best_height, std::size_t most) {
  const std::vector<Bytes> peaks = PeaksAround(sections);
  const Bytes bound = *std::max_element(sections.live.begin(), sections.live.end());
  std::vector<std::size_t> core;
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    if (peaks[i] - bound >= bound - best_height) core.push_back(i);
  }
  if (core.size() <= most) return core;
  // All that are higher than the one that is too many.
  std::nth_element(core.begin(), core.begin() + static_cast<std::ptrdiff_t>(most), core.end(),
                   [&](std::size_t a, std::size_t b) { return peaks[a] > peaks[b]; });
  const Bytes too_low = peaks[core[most]];
  std::erase_if(core, [&](std::size_t i) { return peaks[i] <= too_low; });
  std::sort(core.begin(), core.end());
  return core;
}

SearchResult SearchCore(const Problem& problem, const Sections& sections, const RangeTree& tree, const SearchTask& task,
                        const PlannerOptions& options) {
  const bool fixed = std::any_of(problem.buffers.begin(), problem.buffers.end(),
                                 [](const Buffer& buffer) { return buffer.fixed_offset.has_value(); });
  if (fixed || problem.buffers.empty()) return {};
  return CoreSearch(problem, sections, tree, task, options).Run();
}

}  // namespace livepool
