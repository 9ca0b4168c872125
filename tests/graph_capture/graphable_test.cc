#include "livepool/graph/graphable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph_capture/test_graphs.h"

namespace livepool {
namespace {

using testing::GraphBuilder;
using ::testing::HasSubstr;
using Kind = NotGraphable::Kind;

class GraphableTest : public ::testing::Test {
 protected:
  ValueId OnHost(const std::vector<std::int64_t>& sizes, StorageKind kind = StorageKind::kIntermediate) {
    const ValueId value = b_.Tensor(sizes, kind);
    b_.graph.values[static_cast<std::size_t>(value)].on_host = true;
    return value;
  }
  void Expect(Kind kind, OpIndex op, const char* says) const {
    const std::optional<NotGraphable> why = WhyNotGraphable(b_.graph);
    ASSERT_TRUE(why.has_value());
    EXPECT_EQ(why->kind, kind);
    EXPECT_EQ(why->op, op);
    EXPECT_THAT(why->reason, HasSubstr(says));
  }

  GraphBuilder b_;
  const ValueId x_ = b_.Tensor({4}, StorageKind::kInput);
  const ValueId y_ = b_.Tensor({4});
};

TEST_F(GraphableTest, KernelsOnTheDeviceAre) {
  b_.Op("aten::mul", {x_, OnHost({}, StorageKind::kConstant)}, {y_});  // x * 2
  b_.graph.outputs = {y_};
  EXPECT_FALSE(WhyNotGraphable(b_.graph).has_value());
}

TEST_F(GraphableTest, NotIfTheHostLooksAtAResult) {
  b_.Op("aten::sum", {x_}, {y_});
  b_.Op("aten::_local_scalar_dense", {y_}, {}, {.effect = true, .guard = true});
  Expect(Kind::kDependsOnData, 1, "aten::_local_scalar_dense (op 1)");
}

TEST_F(GraphableTest, NotIfAnArgumentOnTheHostIsRead) {
  b_.Op("aten::add", {x_, OnHost({}, StorageKind::kInput)}, {y_});
  Expect(Kind::kInputOnHost, 0, "an argument on the CPU");
}

TEST_F(GraphableTest, AnArgumentOnTheHostThatNobodyReadsDoesNoHarm) {
  OnHost({4}, StorageKind::kInput);
  b_.Op("aten::neg", {x_}, {y_});
  EXPECT_FALSE(WhyNotGraphable(b_.graph).has_value());
}

TEST_F(GraphableTest, NotIfStateOnTheHostIsRead) {
  b_.Op("aten::add", {x_, OnHost({}, StorageKind::kState)}, {y_});
  Expect(Kind::kReadsHostBytes, 0, "state on the CPU");
}

TEST_F(GraphableTest, NotIfMoreThanANumberIsReadFromTheHost) {
  b_.Op("aten::index", {x_, OnHost({2}, StorageKind::kConstant)}, {y_});
  Expect(Kind::kReadsHostBytes, 0, "aten::index (op 0)");
}

TEST_F(GraphableTest, NotIfATensorOnTheHostIsMade) {
  b_.Op("aten::_to_copy", {x_}, {OnHost({4})});
  Expect(Kind::kMakesHostBytes, 0, "gives a tensor on the CPU");
}

TEST_F(GraphableTest, NotIfAnOutputIsOnTheHost) {
  b_.graph.outputs = {OnHost({4}, StorageKind::kInput)};
  Expect(Kind::kReturnsHost, -1, "an output is on the CPU");
}

}  // namespace
}  // namespace livepool
