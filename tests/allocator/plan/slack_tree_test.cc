#include "slack_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace livepool {
namespace {

TEST(SlackTree, EqualsAPlainArray) {
  for (const std::size_t size : {1U, 2U, 7U, 16U, 33U}) {
    std::mt19937_64 random(size);
    std::vector<Bytes> plain(size);
    for (Bytes& value : plain) value = static_cast<Bytes>(random() % 50);
    SlackTree tree(plain);
    for (int step = 0; step < 200; ++step) {
      const SectionIndex begin = random() % size;
      const SectionIndex end = begin + 1 + random() % (size - begin);
      const auto first = plain.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto last = plain.begin() + static_cast<std::ptrdiff_t>(end);
      const auto least = std::min_element(first, last);
      const SlackTree::Least found = tree.LeastIn({begin, end});
      EXPECT_EQ(found.slack, *least);
      EXPECT_EQ(found.section, static_cast<SectionIndex>(least - plain.begin()));
      const auto waste = static_cast<Bytes>(random() % 9);
      tree.Subtract({begin, end}, waste);
      for (auto it = first; it != last; ++it) *it -= waste;
    }
  }
}

}  // namespace
}  // namespace livepool
