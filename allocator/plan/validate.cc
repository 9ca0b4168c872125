#include "livepool/plan/validate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "livepool/base/error.h"

namespace livepool {
namespace {

std::string Name(const Buffer& buffer) { return "buffer " + std::to_string(buffer.id); }

std::string Interval(std::int64_t begin, std::int64_t end) {
  return "[" + std::to_string(begin) + ", " + std::to_string(end) + ")";
}

PlanVerdict Good() { return {}; }

PlanVerdict JudgeBuffers(const Problem& problem) {
  const auto bad = [](const Buffer& buffer, const std::string& what) {
    return PlanVerdict{PlanFault::kBadBuffer, "bad buffer: " + Name(buffer) + " has " + what};
  };
  for (const Buffer& buffer : problem.buffers) {
    const Lifetime& life = buffer.lifetime;
    if (buffer.size <= 0) return bad(buffer, "size " + std::to_string(buffer.size));
    if (buffer.alignment <= 0) return bad(buffer, "alignment " + std::to_string(buffer.alignment));
    if (life.death <= life.birth) return bad(buffer, "the empty lifetime " + Interval(life.birth, life.death));
  }
  std::vector<std::size_t> by_id(problem.buffers.size());
  std::iota(by_id.begin(), by_id.end(), std::size_t{0});
  std::sort(by_id.begin(), by_id.end(),
            [&](std::size_t a, std::size_t b) { return problem.buffers[a].id < problem.buffers[b].id; });
  for (std::size_t k = 1; k < by_id.size(); ++k) {
    const Buffer& buffer = problem.buffers[by_id[k]];
    if (buffer.id == problem.buffers[by_id[k - 1]].id) return bad(buffer, "the id of another buffer");
  }
  return Good();
}

PlanVerdict JudgeOffset(const Buffer& buffer, Bytes offset) {
  const std::string where = Name(buffer) + " lies at " + std::to_string(offset);
  Bytes end = 0;
  if (offset < 0) return {PlanFault::kNegative, "negative offset: " + where};
  if (__builtin_add_overflow(offset, buffer.size, &end)) {
    return {PlanFault::kNegative, "beyond 64 bits: " + where + " with size " + std::to_string(buffer.size)};
  }
  if (offset % buffer.alignment != 0) {
    return {PlanFault::kAlignment, "alignment: " + where + ", not a multiple of " + std::to_string(buffer.alignment)};
  }
  if (buffer.fixed_offset && *buffer.fixed_offset != offset) {
    return {PlanFault::kMoved, "moved: " + where + " but is fixed at " + std::to_string(*buffer.fixed_offset)};
  }
  return Good();
}

// Plays the pass: takes and gives back ranges as buffers are born and die.
class Playback {
 public:
  Playback(const Problem& problem, const Plan& plan) : problem_(problem), plan_(plan) {}

  PlanVerdict Run() {
    // At each time all deaths, then all births.
    std::vector<std::pair<Time, std::size_t>> births;
    std::vector<std::pair<Time, std::size_t>> deaths;
    for (std::size_t i = 0; i < problem_.buffers.size(); ++i) {
      births.emplace_back(problem_.buffers[i].lifetime.birth, i);
      deaths.emplace_back(problem_.buffers[i].lifetime.death, i);
    }
    std::sort(births.begin(), births.end());
    std::sort(deaths.begin(), deaths.end());
    auto next_death = deaths.begin();
    for (const auto& [time, born] : births) {
      for (; next_death != deaths.end() && next_death->first <= time; ++next_death) Die(next_death->second);
      if (PlanVerdict verdict = Live(born); !verdict.ok()) return verdict;
    }
    return Good();
  }

  Bytes peak() const { return peak_; }

 private:
  // Invariant: the live ranges are disjoint. So a newcomer overlaps one of them only if it overlaps a neighbour, and
  // their sizes sum within 64 bits.
  PlanVerdict Live(std::size_t i) {
    const Bytes begin = plan_.offsets[i];
    const auto above = live_.lower_bound(begin);
    if (above != live_.end() && above->first < begin + problem_.buffers[i].size) return Overlap(above->second, i);
    if (above != live_.begin()) {
      const auto below = std::prev(above);
      if (begin < below->first + problem_.buffers[below->second].size) return Overlap(below->second, i);
    }
    live_.emplace_hint(above, begin, i);
    live_bytes_ += problem_.buffers[i].size;
    peak_ = std::max(peak_, live_bytes_);
    return Good();
  }

  void Die(std::size_t i) {
    live_.erase(plan_.offsets[i]);
    live_bytes_ -= problem_.buffers[i].size;
  }

  PlanVerdict Overlap(std::size_t a, std::size_t b) const {
    return {PlanFault::kOverlap, "overlap: " + Describe(a) + " and " + Describe(b)};
  }

  // "buffer 7 in bytes [0, 64) alive [2, 5)"
  std::string Describe(std::size_t i) const {
    const Buffer& buffer = problem_.buffers[i];
    const Bytes offset = plan_.offsets[i];
    return Name(buffer) + " in bytes " + Interval(offset, offset + buffer.size) + " alive " +
           Interval(buffer.lifetime.birth, buffer.lifetime.death);
  }

  const Problem& problem_;
  const Plan& plan_;
  std::map<Bytes, std::size_t> live_;  // offset -> buffer
  Bytes live_bytes_ = 0;
  Bytes peak_ = 0;
};

PlanVerdict JudgeHeight(const Problem& problem, const Plan& plan) {
  Bytes height = 0;
  const Buffer* highest = nullptr;
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Bytes end = plan.offsets[i] + problem.buffers[i].size;
    if (end > height) highest = &problem.buffers[i];
    height = std::max(height, end);
  }
  if (plan.height == height) return Good();
  const std::string truth =
      highest == nullptr ? "there are no buffers" : Name(*highest) + " ends at " + std::to_string(height);
  return {PlanFault::kHeight, "height: the plan says " + std::to_string(plan.height) + " but " + truth};
}

}  // namespace

PlanVerdict Validate(const Problem& problem, const Plan& plan) {
  if (PlanVerdict verdict = JudgeBuffers(problem); !verdict.ok()) return verdict;
  if (plan.offsets.size() != problem.buffers.size()) {
    return {PlanFault::kMissingOffset, "missing offset: " + std::to_string(plan.offsets.size()) + " offsets for " +
                                           std::to_string(problem.buffers.size()) + " buffers"};
  }
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    PlanVerdict verdict = JudgeOffset(problem.buffers[i], plan.offsets[i]);
    if (!verdict.ok()) return verdict;
  }
  Playback playback(problem, plan);
  if (PlanVerdict verdict = playback.Run(); !verdict.ok()) return verdict;
  if (PlanVerdict verdict = JudgeHeight(problem, plan); !verdict.ok()) return verdict;
  if (plan.lower_bound != playback.peak()) {
    return {PlanFault::kLowerBound, "lower bound: the plan says " + std::to_string(plan.lower_bound) + " but at most " +
                                        std::to_string(playback.peak()) + " bytes are alive at once"};
  }
  if (plan.proved_bound > plan.height) {
    return {PlanFault::kProvedBound, "proved bound: the plan says that none is lower than " +
                                         std::to_string(plan.proved_bound) + " but has " + std::to_string(plan.height) +
                                         " itself"};
  }
  return Good();
}

void CheckPlan(const Problem& problem, const Plan& plan) {
  const PlanVerdict verdict = Validate(problem, plan);
  if (!verdict.ok()) throw InvalidPlan(verdict.message);
}

}  // namespace livepool
