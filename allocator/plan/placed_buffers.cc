#include "placed_buffers.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

namespace livepool {
namespace {

// Earlier than the death of any buffer, since a death comes after a birth.
constexpr Time kNothingPlaced = std::numeric_limits<Time>::min();

}  // namespace

PlacedBuffers::PlacedBuffers(const Problem& problem)
    : problem_(problem),
      by_birth_(problem.buffers.size()),
      leaf_of_(problem.buffers.size()),
      offsets_(problem.buffers.size()),
      leaf_count_(std::bit_ceil(problem.buffers.size())),
      latest_death_(2 * leaf_count_, kNothingPlaced) {
  std::iota(by_birth_.begin(), by_birth_.end(), std::size_t{0});
  std::stable_sort(by_birth_.begin(), by_birth_.end(), [&](std::size_t a, std::size_t b) {
    return problem.buffers[a].lifetime.birth < problem.buffers[b].lifetime.birth;
  });
  for (std::size_t leaf = 0; leaf < by_birth_.size(); ++leaf) leaf_of_[by_birth_[leaf]] = leaf;
}

void PlacedBuffers::Insert(std::size_t index, Bytes offset) {
  offsets_[index] = offset;
  const Time death = problem_.buffers[index].lifetime.death;
  for (std::size_t node = leaf_count_ + leaf_of_[index]; node > 0; node /= 2) {
    latest_death_[node] = std::max(latest_death_[node], death);
  }
}

const std::vector<PlacedBuffers::Range>& PlacedBuffers::During(const Lifetime& lifetime) {
  found_.clear();
  Collect(1, 0, leaf_count_, lifetime);
  // Placed buffers that live together are disjoint, but those found here need not live together: the index
  // makes the order total. Callers only depend on `begin`.
  std::sort(found_.begin(), found_.end(), [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.buffer < b.buffer;
  });
  return found_;
}

void PlacedBuffers::Collect(std::size_t node, std::size_t first_leaf, std::size_t leaves, const Lifetime& lifetime) {
  if (latest_death_[node] <= lifetime.birth) return;
  // Something is placed below this node, hence its first leaf is a buffer.
  const Buffer& first = problem_.buffers[by_birth_[first_leaf]];
  if (first.lifetime.birth >= lifetime.death) return;
  if (leaves == 1) {
    const std::size_t buffer = by_birth_[first_leaf];
    found_.push_back({offsets_[buffer], offsets_[buffer] + first.size, buffer});
    return;
  }
  Collect(2 * node, first_leaf, leaves / 2, lifetime);
  Collect(2 * node + 1, first_leaf + leaves / 2, leaves / 2, lifetime);
}

}  // namespace livepool
