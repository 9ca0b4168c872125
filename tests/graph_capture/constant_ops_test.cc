#include "livepool/graph/constant_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph_capture/test_graphs.h"

namespace livepool {
namespace {

using ::testing::ElementsAre;
using testing::GraphBuilder;

constexpr Bytes kKeep = 64;  // 16 floats

class ConstantOpsTest : public ::testing::Test {
 protected:
  std::vector<bool> Constant() const { return FindConstantOps(b_.graph, kKeep).constant; }
  std::vector<bool> Folded() const { return FindConstantOps(b_.graph, kKeep).folded; }
  ValueId OnHost(ValueId value) {
    b_.graph.values[static_cast<std::size_t>(value)].on_host = true;
    return value;
  }

  GraphBuilder b_;
};

TEST_F(ConstantOpsTest, WhatConstantsAloneMakeIsConstant) {
  //  arange ─▶ t ─▶ mul(t, number) ─▶ u ─┐
  //                                 x ───┴▶ add ─▶ y
  const ValueId x = b_.Tensor({4}, StorageKind::kInput);
  const ValueId number = b_.Tensor({}, StorageKind::kConstant);
  const ValueId t = b_.Tensor({4}), u = b_.Tensor({4}), y = b_.Tensor({4});
  b_.Op("aten::arange", {}, {t});
  b_.Op("aten::mul", {t, number}, {u});
  b_.Op("aten::add", {x, u}, {y});
  EXPECT_THAT(Constant(), ElementsAre(true, true, false));
  EXPECT_EQ(Folded(), Constant());
}

TEST_F(ConstantOpsTest, WhatIsRandomOrUnwrittenIsNot) {
  const ValueId t = b_.Tensor({4}), u = b_.Tensor({4});
  b_.Op("aten::rand", {}, {t}, {.pure = false});
  b_.Op("aten::neg", {t}, {u});
  EXPECT_THAT(Constant(), ElementsAre(false, false));
}

TEST_F(ConstantOpsTest, StateIsNotConstantThoughNobodyWritesToIt) {
  const ValueId weight = b_.Tensor({4}, StorageKind::kState), u = b_.Tensor({4});
  b_.Op("aten::neg", {weight}, {u});
  EXPECT_THAT(Constant(), ElementsAre(false));
}

TEST_F(ConstantOpsTest, WhatIsWrittenToIsMadeInEachPass) {
  //  zeros ─▶ t;  view(t) ─▶ v;  v += x      t is another tensor in each pass
  const ValueId x = b_.Tensor({4}, StorageKind::kInput);
  const ValueId t = b_.Tensor({4});
  const ValueId v = b_.View(t, {2, 2}, {2, 1});
  b_.Op("aten::zeros", {}, {t});
  b_.Op("aten::view", {t}, {v});
  b_.Op("aten::add_", {v, x}, {v}, {.writes = {v}});
  EXPECT_THAT(Constant(), ElementsAre(false, false, false));
}

TEST_F(ConstantOpsTest, AConstantThatIsWrittenToIsNone) {
  const ValueId number = b_.Tensor({4}, StorageKind::kConstant), u = b_.Tensor({4});
  b_.Op("aten::neg", {number}, {u});
  b_.Op("aten::add_", {number, number}, {number}, {.writes = {number}});
  EXPECT_THAT(Constant(), ElementsAre(false, false));
}

TEST_F(ConstantOpsTest, AnOutputIsTheCallersAndMadeAnew) {
  const ValueId t = b_.Tensor({4}), u = b_.Tensor({4});
  b_.Op("aten::arange", {}, {t});
  b_.Op("aten::neg", {t}, {u});
  b_.graph.outputs = {u};
  EXPECT_THAT(Constant(), ElementsAre(true, false));
}

TEST_F(ConstantOpsTest, ALargeResultIsNotKept) {
  // Nor is a view of it; what is made of it and small is.
  const ValueId x = b_.Tensor({4}, StorageKind::kInput);
  const ValueId large = b_.Tensor({1000}), small = b_.Tensor({4}), y = b_.Tensor({4});
  const ValueId view = b_.View(large, {10, 100}, {100, 1});
  b_.Op("aten::arange", {}, {large});
  b_.Op("aten::view", {large}, {view});
  b_.Op("aten::sum", {view}, {small});
  b_.Op("aten::add", {x, small}, {y});
  EXPECT_THAT(Constant(), ElementsAre(true, true, true, false));
  EXPECT_THAT(Folded(), ElementsAre(false, false, true, false));
}

TEST_F(ConstantOpsTest, AGuardOnConstantsHasOneResult) {
  //  full ─▶ mask (large);  all(mask) ─▶ a;  item(a)
  const ValueId mask = b_.Tensor({1000}), a = b_.Tensor({});
  b_.Op("aten::full", {}, {mask});
  b_.Op("aten::all", {mask}, {a});
  b_.Op("aten::_local_scalar_dense", {a}, {}, {.effect = true, .guard = true});
  EXPECT_THAT(Folded(), ElementsAre(false, true, true));
}

TEST_F(ConstantOpsTest, WhatTheHostWroteIsKeptOnTheDeviceWhateverItsSize) {
  const ValueId host = OnHost(b_.Tensor({1000}, StorageKind::kConstant));
  const ValueId copy = OnHost(b_.Tensor({1000})), device = b_.Tensor({1000});
  b_.Op("aten::clone", {host}, {copy});
  b_.Op("aten::_to_copy", {copy}, {device});
  EXPECT_THAT(Folded(), ElementsAre(true, true));
}

}  // namespace
}  // namespace livepool
