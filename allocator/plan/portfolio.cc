#include "portfolio.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "offset_best_fit.h"
#include "order.h"
#include "skyline.h"
#include "whole_slots.h"

namespace livepool {
namespace {

// Offset best fit runs up to this many overlapping pairs: about 50 ms.
constexpr std::uint64_t kMaxPairs = 1'000'000;
// From this many buffers on there may be time for a single rule.
constexpr std::size_t kHuge = 100'000;

// Buffers a and b overlap if the later one of them begins while the other one lives: so at each birth, all that are
// alive then.
std::uint64_t CountOverlappingPairs(const Sections& sections) {
  std::vector<std::uint64_t> begins(sections.count() + 1);
  std::vector<std::uint64_t> ends(sections.count() + 1);
  for (const SectionRange& range : sections.ranges) {
    ++begins[range.begin];
    ++ends[range.end];
  }
  std::uint64_t alive = 0;
  std::uint64_t pairs = 0;
  for (SectionIndex s = 0; s < sections.count(); ++s) {
    alive -= ends[s];
    pairs += begins[s] * alive + begins[s] * (begins[s] - (begins[s] > 0 ? 1 : 0)) / 2;
    alive += begins[s];
  }
  return pairs;
}

struct SkylineRule {
  Order order;
  std::optional<double> tightness;
};

// The letters name an order in minimalloc's way (W: lifetime, A: area, T: peak, Z: size, U: death, L: birth, C:
// sections). Lifetime comes first, as it is enough for most traces of models. A huge problem takes seconds for each
// rule, and the tight one by peak is a better one for random buffers, though slower.
std::vector<SkylineRule> SkylineRules(std::size_t buffers) {
  const SkylineRule lifetime{{Key::kLifetime, Key::kArea, Key::kPeak}, std::nullopt};  // WAT
  const SkylineRule tight_peak{{Key::kPeak, Key::kLifetime, Key::kArea}, 0.02};        // TWA
  const bool huge = buffers >= kHuge;
  return {
      huge ? tight_peak : lifetime,
      {{Key::kPeak, Key::kLifetime, Key::kArea}, std::nullopt},  // TWA
      {{Key::kArea, Key::kSize}, std::nullopt},                  // AZ
      {{Key::kBirth, Key::kSize}, 0.02},                         // LZ
      huge ? lifetime : tight_peak,
      {{Key::kLifetime, Key::kArea, Key::kPeak}, 0.1},           // WAT
      {{Key::kDeath, Key::kSize}, 0.1},                          // UZ
      {{Key::kSections, Key::kSize}, 0.1},                       // CZ
      {{Key::kSize, Key::kLifetime}, 1.0},                       // ZW
      {{Key::kPeak, Key::kArea, Key::kLifetime}, std::nullopt},  // TAW
  };
}

std::string NameOf(const SkylineRule& rule) {
  std::string name = "skyline by " + ToString(rule.order);
  if (rule.tightness) name += ", tight at " + std::to_string(std::lround(*rule.tightness * 100)) + " %";
  return name;
}

bool AlignmentsDiffer(const Problem& problem) {
  return std::any_of(problem.buffers.begin(), problem.buffers.end(),
                     [&](const Buffer& buffer) { return buffer.alignment != problem.buffers.front().alignment; });
}

std::vector<Order> BestFitOrders(const Problem& problem) {
  std::vector<Order> orders = {
      {Key::kBirth, Key::kSize},
      {Key::kSize, Key::kLifetime, Key::kBirth},
      {Key::kArea, Key::kSize, Key::kBirth},
      {Key::kLifetime, Key::kSize, Key::kBirth},
  };
  // What is placed later fills the gaps that alignment leaves: so the largest alignments come first.
  if (AlignmentsDiffer(problem)) {
    orders.push_back({Key::kAlignment, Key::kSize, Key::kBirth});
    orders.push_back({Key::kAlignment, Key::kArea, Key::kBirth});
    orders.push_back({Key::kAlignment, Key::kLifetime, Key::kBirth});
  }
  return orders;
}

}  // namespace

std::vector<Rule> Portfolio(const Problem& problem, const Sections& sections, const RangeTree& tree, Bytes bound,
                            const PlannerOptions& options) {
  const bool fixed = std::any_of(problem.buffers.begin(), problem.buffers.end(),
                                 [](const Buffer& buffer) { return buffer.fixed_offset.has_value(); });
  const bool only_best_fit = !options.skyline && (fixed || !options.whole_slots);
  std::vector<Rule> rules;
  if (options.skyline) {
    for (const SkylineRule& rule : SkylineRules(problem.buffers.size())) {
      rules.push_back({NameOf(rule), true, [&problem, &sections, &tree, rule, bound](Bytes limit) {
                         return Skyline(problem, sections, tree,
                                        {SortBuffers(problem, sections, rule.order), rule.tightness, bound}, limit);
                       }});
    }
  }
  if (options.offset_best_fit && (only_best_fit || CountOverlappingPairs(sections) <= kMaxPairs)) {
    for (const Order& order : BestFitOrders(problem)) {
      rules.push_back({"offset best fit by " + ToString(order), true, [&problem, &sections, order](Bytes limit) {
                         return OffsetBestFit(problem, SortBuffers(problem, sections, order), limit);
                       }});
    }
  }
  if (options.whole_slots) {
    rules.push_back({"whole slots by birth", false, [&problem](Bytes limit) { return WholeSlots(problem, limit); }});
  }
  if (fixed) std::erase_if(rules, [](const Rule& rule) { return !rule.honours_fixed_offsets; });
  return rules;
}

}  // namespace livepool
