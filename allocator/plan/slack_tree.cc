#include "slack_tree.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace livepool {
namespace {

// Of sections past the last one: never the least, and far from overflow.
constexpr Bytes kPlenty = std::numeric_limits<Bytes>::max() / 2;

}  // namespace

SlackTree::SlackTree(const std::vector<Bytes>& slack)
    : leaf_count_(std::bit_ceil(slack.size())), least_(2 * leaf_count_, kPlenty), added_(2 * leaf_count_, 0) {
  std::copy(slack.begin(), slack.end(), least_.begin() + static_cast<std::ptrdiff_t>(leaf_count_));
  for (std::size_t node = leaf_count_ - 1; node > 0; --node) {
    least_[node] = std::min(least_[2 * node], least_[2 * node + 1]);
  }
}

void SlackTree::Subtract(const SectionRange& range, Bytes waste) { Subtract(1, {0, leaf_count_}, range, waste); }

SlackTree::Least SlackTree::LeastIn(const SectionRange& range) const {
  Least least{std::numeric_limits<Bytes>::max(), range.begin};
  Find(1, {0, leaf_count_}, 0, range, least);
  return least;
}

void SlackTree::Subtract(std::size_t node, const SectionRange& below, const SectionRange& range, Bytes waste) {
  if (below.begin >= range.end || below.end <= range.begin) return;
  if (range.begin <= below.begin && below.end <= range.end) {
    least_[node] -= waste;
    added_[node] -= waste;
    return;
  }
  const SectionIndex middle = below.begin + (below.end - below.begin) / 2;
  Subtract(2 * node, {below.begin, middle}, range, waste);
  Subtract(2 * node + 1, {middle, below.end}, range, waste);
  least_[node] = added_[node] + std::min(least_[2 * node], least_[2 * node + 1]);
}

// `above` is the sum of `added` over the proper ancestors.
void SlackTree::Find(std::size_t node, const SectionRange& below, Bytes above, const SectionRange& range,
                     Least& least) const {
  if (below.begin >= range.end || below.end <= range.begin || above + least_[node] >= least.slack) return;
  if (range.begin <= below.begin && below.end <= range.end) {
    least = {above + least_[node], ArgLeast(node)};
    return;
  }
  const SectionIndex middle = below.begin + (below.end - below.begin) / 2;
  Find(2 * node, {below.begin, middle}, above + added_[node], range, least);
  Find(2 * node + 1, {middle, below.end}, above + added_[node], range, least);
}

SectionIndex SlackTree::ArgLeast(std::size_t node) const {
  while (node < leaf_count_) {
    node *= 2;
    if (least_[node + 1] < least_[node]) ++node;
  }
  return node - leaf_count_;
}

}  // namespace livepool
