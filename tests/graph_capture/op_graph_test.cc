#include "livepool/graph/op_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "graph_capture/test_graphs.h"

namespace livepool {
namespace {

using ::testing::ElementsAre;
using testing::FloatValue;
using testing::GraphBuilder;

TEST(ValueTest, TheSameGeometryIsTheSameViewOfOneStorage) {
  const Value a = FloatValue({2, 3}, {3, 1});
  Value b = a;
  b.storage = 7;
  EXPECT_TRUE(a.SameGeometry(b));
  b.storage_offset = 1;
  EXPECT_FALSE(a.SameGeometry(b));
  b = a;
  b.dtype = 1;
  EXPECT_FALSE(a.SameGeometry(b));
  EXPECT_FALSE(a.SameGeometry(FloatValue({3, 2}, {3, 1})));
  EXPECT_FALSE(a.SameGeometry(FloatValue({2, 3}, {1, 2})));
}

TEST(ValueTest, CountsItsElements) {
  EXPECT_EQ(FloatValue({}, {}).numel(), 1);
  EXPECT_EQ(FloatValue({2, 3, 4}, {12, 4, 1}).numel(), 24);
  EXPECT_EQ(FloatValue({2, 0}, {1, 1}).numel(), 0);
  EXPECT_EQ(FloatValue({2, 3}, {3, 1}).DenseBytes(), 24);
}

struct Pattern {
  std::string name;
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  bool dense;
};

const Pattern kPatterns[] = {
    {"Scalar", {}, {}, true},
    {"Vector", {5}, {1}, true},
    {"Contiguous", {2, 3, 4}, {12, 4, 1}, true},
    {"ChannelsLast", {2, 3, 4, 5}, {60, 1, 15, 3}, true},
    {"Transposed", {3, 2}, {1, 3}, true},
    {"Permuted", {4, 2, 3}, {1, 12, 4}, true},
    {"OnesHaveAnyStride", {1, 3, 1}, {99, 1, 0}, true},
    {"Empty", {3, 0, 2}, {2, 2, 1}, true},
    {"EmptyInTheMiddleOfTies", {2, 0}, {1, 1}, true},
    {"EverySecond", {5}, {2}, false},
    {"Columns", {3, 2}, {4, 1}, false},
    {"Expanded", {3, 2}, {0, 1}, false},
    {"ExpandedScalar", {4}, {0}, false},
    {"Overlapping", {3, 2}, {1, 1}, false},
    {"Sliding", {3, 3}, {1, 2}, false},
    {"Gap", {2, 3}, {4, 1}, false},
    {"LastIsWide", {2, 3}, {6, 2}, false},
};

class StridesTest : public ::testing::TestWithParam<Pattern> {};

TEST_P(StridesTest, AreDenseWithoutOverlapOrNot) {
  EXPECT_EQ(FloatValue(GetParam().sizes, GetParam().strides).NonOverlappingAndDense(), GetParam().dense);
}

INSTANTIATE_TEST_SUITE_P(Patterns, StridesTest, ::testing::ValuesIn(kPatterns),
                         [](const auto& test) { return test.param.name; });

// By the definition: the places of all elements are 0, 1, ..., numel - 1, in some order.
bool IsDenseByCounting(const Value& value) {
  std::vector<std::int64_t> places{0};
  for (std::size_t i = 0; i < value.sizes.size(); ++i) {
    std::vector<std::int64_t> next;
    for (const std::int64_t place : places) {
      for (std::int64_t k = 0; k < value.sizes[i]; ++k) next.push_back(place + k * value.strides[i]);
    }
    places = next;
  }
  std::sort(places.begin(), places.end());
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (places[i] != static_cast<std::int64_t>(i)) return false;
  }
  return true;
}

TEST(StridesRandomTest, EqualACount) {
  std::mt19937_64 random(1);
  int dense = 0;
  for (int i = 0; i < 20'000; ++i) {
    Value value = FloatValue({}, {});
    for (std::size_t dims = random() % 5; dims > 0; --dims)
      value.sizes.push_back(static_cast<std::int64_t>(random() % 10 == 0 ? 0 : 1 + random() % 3));
    value.strides = testing::Contiguous(value.sizes);
    // Permuted, and then perhaps spoilt.
    std::vector<std::size_t> order(value.sizes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    const Value sorted = value;
    for (std::size_t k = 0; k < order.size(); ++k) {
      value.sizes[k] = sorted.sizes[order[k]];
      value.strides[k] = sorted.strides[order[k]];
    }
    if (!value.strides.empty() && random() % 2 == 0)
      value.strides[random() % value.strides.size()] = static_cast<std::int64_t>(random() % 9);
    ASSERT_EQ(value.NonOverlappingAndDense(), IsDenseByCounting(value))
        << ::testing::PrintToString(value.sizes) << ::testing::PrintToString(value.strides);
    dense += value.NonOverlappingAndDense();
  }
  EXPECT_GT(dense, 5'000);
  EXPECT_LT(dense, 18'000);
}

//   op       0      1      2
//   x ──▶ a ──▶ b ──▶ out      v views a, and is used by op 2
TEST(OpGraphTest, KnowsTheLastUseOfValuesAndStorages) {
  GraphBuilder g;
  const ValueId x = g.Tensor({4}, StorageKind::kInput);
  const ValueId a = g.Tensor({4});
  const ValueId v = g.View(a, {2}, {1});
  const ValueId b = g.Tensor({4});
  const ValueId out = g.Tensor({4});
  const ValueId unused = g.Tensor({4}, StorageKind::kState);
  g.Op("make", {x}, {a, v});
  g.Op("use", {a}, {b});
  g.Op("use", {b, v}, {out});
  g.graph.outputs = {out};
  const auto values = g.graph.LastUseOfValues();
  EXPECT_EQ(values[static_cast<std::size_t>(a)], 1);
  EXPECT_EQ(values[static_cast<std::size_t>(v)], 2);
  EXPECT_EQ(values[static_cast<std::size_t>(unused)], -1);
  EXPECT_THAT(g.graph.LastUseOfStorages(), ElementsAre(0, 2, 2, 3, -1));
}

TEST(OpGraphTest, AnOutputNobodyReadsIsUsedByItsOp) {
  GraphBuilder g;
  const ValueId a = g.Tensor({4});
  const ValueId mask = g.Tensor({4});
  g.Op("dropout", {}, {a, mask});
  g.graph.outputs = {a};
  EXPECT_THAT(g.graph.LastUseOfStorages(), ElementsAre(1, 0));
}

TEST(LiveOpsTest, OpsThatNobodyNeedsAreDead) {
  GraphBuilder g;
  const ValueId x = g.Tensor({4}, StorageKind::kInput);
  const ValueId a = g.Tensor({4}), b = g.Tensor({4}), c = g.Tensor({4});
  g.Op("live", {x}, {a});
  g.Op("dead", {x}, {b});
  g.Op("dead_too", {b}, {c});
  g.graph.outputs = {a};
  EXPECT_THAT(g.graph.LiveOps(), ElementsAre(true, false, false));
}

TEST(LiveOpsTest, WhatHasAnEffectAndWhatItReadsIsLive) {
  GraphBuilder g;
  const ValueId x = g.Tensor({4}, StorageKind::kInput);
  const ValueId a = g.Tensor({4}), b = g.Tensor({4});
  g.Op("feeds_it", {x}, {a});
  g.Op("random", {a}, {b}, {.effect = true});
  EXPECT_THAT(g.graph.LiveOps(), ElementsAre(true, true));
}

//   a = empty();  a.fill_(x);  v = a.view();  v.add_(b);  out = f(a)
TEST(LiveOpsTest, FollowsMutationThroughViews) {
  GraphBuilder g;
  const ValueId x = g.Tensor({4}, StorageKind::kInput);
  const ValueId a = g.Tensor({4});
  const ValueId v = g.View(a, {2, 2}, {2, 1});
  const ValueId b = g.Tensor({4}), out = g.Tensor({4});
  g.Op("empty", {}, {a});
  g.Op("fill_", {a, x}, {a}, {.writes = {a}});
  g.Op("view", {a}, {v});
  g.Op("make_b", {x}, {b});
  g.Op("add_", {v, b}, {v}, {.writes = {v}});
  g.Op("f", {a}, {out});
  g.graph.outputs = {out};
  EXPECT_THAT(g.graph.LiveOps(), ElementsAre(true, true, true, true, true, true));
}

TEST(LiveOpsTest, AWriteAfterTheLastReadIsDead) {
  GraphBuilder g;
  const ValueId x = g.Tensor({4}, StorageKind::kInput);
  const ValueId a = g.Tensor({4}), out = g.Tensor({4});
  g.Op("make", {x}, {a});
  g.Op("f", {a}, {out});
  g.Op("zero_", {a}, {a}, {.writes = {a}});
  g.graph.outputs = {out};
  EXPECT_THAT(g.graph.LiveOps(), ElementsAre(true, true, false));
}

TEST(LiveOpsTest, WritesToTheCallersTensorsAreLive) {
  GraphBuilder g;
  const ValueId input = g.Tensor({4}, StorageKind::kInput);
  const ValueId state = g.Tensor({4}, StorageKind::kState);
  const ValueId constant = g.Tensor({4}, StorageKind::kConstant);
  const ValueId a = g.Tensor({4});
  g.Op("make", {input}, {a});
  g.Op("copy_", {state, a}, {state}, {.writes = {state}});
  g.Op("zero_", {input}, {input}, {.writes = {input}});
  g.Op("zero_", {constant}, {constant}, {.writes = {constant}});
  EXPECT_THAT(g.graph.LiveOps(), ElementsAre(true, true, true, false));
}

}  // namespace
}  // namespace livepool
