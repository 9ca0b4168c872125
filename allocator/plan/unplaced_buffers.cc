#include "unplaced_buffers.h"

#include <algorithm>
#include <bit>

namespace livepool {

UnplacedBuffers::UnplacedBuffers(const Sections& sections, const std::vector<std::size_t>& by_rank)
    : by_rank_(by_rank),
      first_leaf_(sections.count() + 1),
      leaf_of_(by_rank.size()),
      leaf_count_(std::bit_ceil(by_rank.size())),
      summaries_(2 * leaf_count_),
      count_(by_rank.size()) {
  // Leaves by (begin of range, rank): a counting sort.
  for (const SectionRange& range : sections.ranges) ++first_leaf_[range.begin + 1];
  for (SectionIndex s = 0; s < sections.count(); ++s) first_leaf_[s + 1] += first_leaf_[s];
  std::vector<std::size_t> next_leaf = first_leaf_;
  for (Rank rank = 0; rank < by_rank.size(); ++rank) {
    const std::size_t buffer = by_rank[rank];
    const SectionRange& range = sections.ranges[buffer];
    leaf_of_[buffer] = next_leaf[range.begin]++;
    summaries_[leaf_count_ + leaf_of_[buffer]] = {rank, range.end};
  }
  for (std::size_t node = leaf_count_ - 1; node > 0; --node) Update(node);
}

std::optional<std::size_t> UnplacedBuffers::BestInside(const SectionRange& gap) const {
  const Rank none = by_rank_.size();
  Search search{first_leaf_[gap.begin], first_leaf_[gap.end], gap.end, none};
  Descend(1, 0, leaf_count_, search);
  if (search.best == none) return std::nullopt;
  return by_rank_[search.best];
}

void UnplacedBuffers::Remove(std::size_t buffer) {
  std::size_t node = leaf_count_ + leaf_of_[buffer];
  summaries_[node] = Summary{};
  while ((node /= 2) > 0) Update(node);
  --count_;
}

void UnplacedBuffers::Descend(std::size_t node, std::size_t leaf, std::size_t leaves, Search& search) const {
  if (leaf >= search.last_leaf || leaf + leaves <= search.first_leaf) return;
  const Summary& summary = summaries_[node];
  if (summary.best_rank >= search.best || summary.first_end > search.end) return;
  if (leaves == 1) {
    search.best = summary.best_rank;
    return;
  }
  // The child with the better rank first: what it finds may spare us the other.
  const std::size_t half = leaves / 2;
  const bool right_first = summaries_[2 * node + 1].best_rank < summaries_[2 * node].best_rank;
  if (right_first) Descend(2 * node + 1, leaf + half, half, search);
  Descend(2 * node, leaf, half, search);
  if (!right_first) Descend(2 * node + 1, leaf + half, half, search);
}

void UnplacedBuffers::Update(std::size_t node) {
  const Summary& left = summaries_[2 * node];
  const Summary& right = summaries_[2 * node + 1];
  summaries_[node] = {std::min(left.best_rank, right.best_rank), std::min(left.first_end, right.first_end)};
}

}  // namespace livepool
