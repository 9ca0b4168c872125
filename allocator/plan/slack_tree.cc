#include "slack_tree.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace livepool {
namespace {

// Of leaves without a section: never the least, and far from overflow.
constexpr Bytes kPlenty = std::numeric_limits<Bytes>::max() / 2;

}  // namespace

SlackTree::SlackTree(const std::vector<Bytes>& slack)
    : leaf_count_(std::bit_ceil(slack.size() + 2)), nodes_(2 * leaf_count_, {kPlenty, 0}) {
  for (SectionIndex s = 0; s < slack.size(); ++s) nodes_[LeafOf(s)].least = slack[s];
  for (std::size_t node = leaf_count_ - 1; node > 0; --node) {
    nodes_[node].least = std::min(nodes_[2 * node].least, nodes_[2 * node + 1].least);
  }
}

void SlackTree::Subtract(const SectionRange& range, Bytes waste) {
  const auto take = [&](std::size_t node) {
    nodes_[node].least -= waste;
    nodes_[node].added -= waste;
  };
  const auto update = [&](std::size_t node) {
    nodes_[node].least = nodes_[node].added + std::min(nodes_[2 * node].least, nodes_[2 * node + 1].least);
  };
  std::size_t left = LeafOf(range.begin) - 1;
  std::size_t right = LeafOf(range.end);
  while (!AreSiblings(left, right)) {
    if (left % 2 == 0) take(left + 1);
    if (right % 2 == 1) take(right - 1);
    update(left /= 2);
    update(right /= 2);
  }
  while (left > 1) update(left /= 2);
}

SlackTree::Least SlackTree::LeastIn(const SectionRange& range) const {
  // Without what was added above `left` and `right`.
  Bytes least_left = std::numeric_limits<Bytes>::max();
  Bytes least_right = least_left;
  std::size_t node_left = 0;
  std::size_t node_right = 0;
  std::size_t left = LeafOf(range.begin) - 1;
  std::size_t right = LeafOf(range.end);
  while (!AreSiblings(left, right)) {
    if (left % 2 == 0 && nodes_[left + 1].least < least_left) {
      least_left = nodes_[left + 1].least;
      node_left = left + 1;
    }
    if (right % 2 == 1 && nodes_[right - 1].least <= least_right) {
      least_right = nodes_[right - 1].least;
      node_right = right - 1;
    }
    left /= 2;
    right /= 2;
    if (node_left != 0) least_left += nodes_[left].added;
    if (node_right != 0) least_right += nodes_[right].added;
  }
  Least least =
      least_left <= least_right ? Least{least_left, ArgLeast(node_left)} : Least{least_right, ArgLeast(node_right)};
  while (left > 1) least.slack += nodes_[left /= 2].added;
  return least;
}

SectionIndex SlackTree::ArgLeast(std::size_t node) const {
  while (node < leaf_count_) {
    node *= 2;
    if (nodes_[node + 1].least < nodes_[node].least) ++node;
  }
  return node - leaf_count_ - 1;
}

}  // namespace livepool
