#include "restarts.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "order.h"

namespace livepool {
namespace {

constexpr std::int64_t kNodesPerStep = 1000;
constexpr double kNoise = 0.02;  // of the number of buffers, times 1 to 8

std::vector<double> RankByItem(const std::vector<std::size_t>& sorted) {
  std::vector<double> rank(sorted.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) rank[sorted[i]] = static_cast<double>(i);
  return rank;
}

std::vector<double> RankByOffset(const std::vector<std::int64_t>& offsets) {
  std::vector<std::size_t> sorted(offsets.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) { return offsets[a] < offsets[b]; });
  return RankByItem(sorted);
}

// In [0, 1). The standard distributions differ between libraries; the engine does not.
double Uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1.0p-53; }

}  // namespace

std::int64_t Luby(std::int64_t k) {
  // k = 2^i - 1 ends a block, with 2^(i - 1); a block is two copies of the one before it and that number.
  while (true) {
    const auto width = std::bit_width(static_cast<std::uint64_t>(k));
    const std::int64_t block = (std::int64_t{1} << width) - 1;
    if (k == block) return (block + 1) / 2;
    k -= block / 2;
  }
}

Restarts::Restarts(const Problem& problem, const Sections& sections, const SearchSwitches& switches, std::uint64_t seed,
                   DepthFirstSearch& search)
    : switches_(switches), search_(search), random_(seed) {
  const std::vector<Order> orders = {
      {Key::kPeak, Key::kArea, Key::kLifetime},
      {Key::kDeath, Key::kSize},
      {Key::kLifetime, Key::kArea, Key::kPeak},
  };
  for (const Order& order : orders) orders_.push_back(RankByItem(SortBuffers(problem, sections, order)));
}

SearchOutcome Restarts::Run(std::int64_t capacity, std::int64_t run, std::int64_t max_nodes) {
  const std::vector<double> rank = RanksOf(run);
  if (switches_.restarts) max_nodes = std::min(max_nodes, Luby(run + 1) * kNodesPerStep);
  const SearchOutcome outcome = search_.Search(
      {.capacity = capacity,
       .rank = rank,
       .max_nodes = max_nodes,
       // Every other time for each order: neither way is better everywhere.
       .weigh_failures = switches_.weigh_failures && (run / static_cast<std::int64_t>(Choices())) % 2 == 1});
  if (outcome == SearchOutcome::kSolved) last_solution_ = RankByOffset(search_.offsets());
  return outcome;
}

SearchOutcome Restarts::Solve(std::int64_t capacity, std::int64_t max_nodes) {
  const std::int64_t end = search_.nodes() + max_nodes;
  for (std::int64_t run = 0; search_.nodes() < end; ++run) {
    const std::int64_t before = search_.nodes();
    const SearchOutcome outcome = Run(capacity, run, end - before);
    if (outcome != SearchOutcome::kStopped) return outcome;
    if (search_.nodes() == before) break;  // stopped from outside
  }
  return SearchOutcome::kStopped;
}

std::vector<double> Restarts::RanksOf(std::int64_t run) {
  const std::size_t choice = static_cast<std::size_t>(run) % Choices();
  std::vector<double> rank = choice < orders_.size() ? orders_[choice] : last_solution_;
  if (static_cast<std::size_t>(run) < Choices()) return rank;
  const double amount = static_cast<double>(rank.size()) * kNoise * static_cast<double>(1U << (random_() % 4));
  for (double& r : rank) r += amount * Uniform(random_);
  return rank;
}

}  // namespace livepool
