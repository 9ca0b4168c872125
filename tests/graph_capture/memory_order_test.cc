#include "livepool/graph/memory_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "graph_capture/test_graphs.h"
#include "livepool/graph/dependencies.h"
#include "livepool/graph/packing.h"

namespace livepool {
namespace {

using ::testing::ElementsAre;
using testing::GraphBuilder;
using testing::OutputsOnly;
using testing::Record;
using testing::Recorded;

constexpr Bytes kAlignment = 1;

PassMemory Seen(const OpGraph& graph) {
  Recorded recorded = Record(graph, OutputsOnly(graph));
  return {.graph = graph, .trace = std::move(recorded.trace), .storage_of = std::move(recorded.storage_of)};
}

// Four large buffers are made at once, and only then reduced one by one.
OpGraph MadeTooEarly() {
  GraphBuilder b;
  std::vector<ValueId> large, small;
  for (int i = 0; i < 4; ++i) b.Op("make", {}, {large.emplace_back(b.Tensor({1000}))});
  for (int i = 0; i < 4; ++i) b.Op("reduce", {large[static_cast<std::size_t>(i)]}, {small.emplace_back(b.Tensor({1}))});
  const ValueId sum = b.Tensor({1});
  b.Op("sum", small, {sum});
  b.graph.outputs = {sum};
  return b.graph;
}

TEST(MemoryOrderTest, LargeBuffersAreMadeWhenTheyAreNeeded) {
  const PassMemory pass = Seen(MadeTooEarly());
  EXPECT_EQ(BoundOf(pass, false, kAlignment), 4 * 4000 + 4);
  const std::optional<OpOrder> order = FindMemoryOrder(pass, 0, false, kAlignment);
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(BoundOf(InOrder(pass, *order).value(), false, kAlignment), 4000 + 4 * 4);
}

TEST(MemoryOrderTest, TheFirstOpsStayWhereTheyAreToldTo) {
  const PassMemory pass = Seen(MadeTooEarly());
  const std::optional<OpOrder> order = FindMemoryOrder(pass, 2, false, kAlignment);
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ((*order)[0], 0);
  EXPECT_EQ((*order)[1], 1);
  EXPECT_EQ(BoundOf(InOrder(pass, *order).value(), false, kAlignment), 2 * 4000 + 4);
}

TEST(MemoryOrderTest, WhatCannotGetBetterStays) {
  GraphBuilder b;
  const ValueId x = b.Tensor({10}), y = b.Tensor({10});
  b.Op("make", {}, {x});
  b.Op("use", {x}, {y});
  b.graph.outputs = {y};
  EXPECT_FALSE(FindMemoryOrder(Seen(b.graph), 0, false, kAlignment).has_value());
}

TEST(MemoryOrderTest, RandomOpsKeepTheirOrderThoughItCosts) {
  OpGraph graph = MadeTooEarly();
  for (int i = 0; i < 4; ++i) graph.ops[static_cast<std::size_t>(i)].effect = true;
  const PassMemory pass = Seen(graph);
  const std::optional<OpOrder> order = FindMemoryOrder(pass, 0, false, kAlignment);
  ASSERT_TRUE(order.has_value());
  std::vector<OpIndex> random;
  std::copy_if(order->begin(), order->end(), std::back_inserter(random), [](OpIndex op) { return op < 4; });
  EXPECT_THAT(random, ElementsAre(0, 1, 2, 3));
}

TEST(MemoryOrderTest, TheTraceInAnotherOrderIsWhatARunInThatOrderWouldWrite) {
  const OpGraph graph = MadeTooEarly();
  const OpOrder order{0, 4, 1, 5, 2, 6, 3, 7, 8};
  OpGraph moved = graph;
  for (std::size_t i = 0; i < order.size(); ++i) moved.ops[i] = graph.ops[static_cast<std::size_t>(order[i])];
  const PassMemory expected = Seen(moved);
  const std::optional<PassMemory> found = InOrder(Seen(graph), order);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->graph, expected.graph);
  EXPECT_EQ(found->trace, expected.trace);
  EXPECT_EQ(found->storage_of, expected.storage_of);
}

TEST(MemoryOrderTest, MemoryThatPassesBetweenOpsUnseenForbidsIt) {
  PassMemory pass = Seen(MadeTooEarly());
  pass.storage_of[0] = -1;  // freed in another op than its own, and no tensor's
  EXPECT_FALSE(InOrder(pass, {0, 4, 1, 5, 2, 6, 3, 7, 8}).has_value());
  EXPECT_FALSE(FindMemoryOrder(pass, 0, false, kAlignment).has_value());
}

TEST(MemoryOrderTest, SoDoesABufferThatWasSeenToLiveLonger) {
  PassMemory pass = Seen(MadeTooEarly());
  // The free of buffer 0 comes last.
  auto& events = pass.trace.events;
  const auto it = std::find(events.begin(), events.end(), TraceEvent{TraceEvent::Kind::kFree, 0});
  ASSERT_NE(it, events.end());
  std::rotate(it, it + 1, events.end());
  EXPECT_FALSE(FindMemoryOrder(pass, 0, false, kAlignment).has_value());
}

// A graph of random reads, writes, views and effects.
OpGraph RandomGraph(std::mt19937& random, int ops) {
  GraphBuilder b;
  const auto pick = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::vector<ValueId> values{b.Tensor({64}, StorageKind::kInput)};
  for (int i = 0; i < ops; ++i) {
    const ValueId x = values[pick(values.size())], y = values[pick(values.size())];
    switch (pick(6)) {
      case 0:
        b.Op("write", {x, y}, {x}, {.writes = {x}});
        break;
      case 1:
        values.push_back(b.View(x, {1}, {1}));
        b.Op("view", {x}, {values.back()});
        break;
      default:
        values.push_back(b.Tensor({static_cast<std::int64_t>(1 + pick(100))}));
        b.Op("op", {x, y}, {values.back()}, {.effect = pick(8) == 0});
    }
  }
  b.graph.outputs = {values.back(), values[pick(values.size())]};
  return b.graph;
}

TEST(MemoryOrderTest, EveryOrderKeepsTheDependenciesAndLowersTheBound) {
  int better = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const OpGraph graph = RandomGraph(random, 40);
    const PassMemory pass = Seen(graph);
    const std::optional<OpOrder> order = FindMemoryOrder(pass, 0, true, kAlignment);
    if (!order) continue;
    ++better;
    std::vector<std::size_t> place(graph.ops.size(), graph.ops.size());
    for (std::size_t i = 0; i < order->size(); ++i) place[static_cast<std::size_t>((*order)[i])] = i;
    ASSERT_EQ(order->size(), graph.ops.size());
    const Dependencies dependencies = Dependencies::Of(graph);
    for (std::size_t i = 0; i < graph.ops.size(); ++i) {
      ASSERT_LT(place[i], graph.ops.size());
      for (const OpIndex after : dependencies.successors[i])
        ASSERT_LT(place[i], place[static_cast<std::size_t>(after)]);
    }
    EXPECT_LT(BoundOf(InOrder(pass, *order).value(), true, kAlignment), BoundOf(pass, true, kAlignment));
  }
  EXPECT_GT(better, 50);
}

}  // namespace
}  // namespace livepool
