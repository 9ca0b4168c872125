// One test for each clause of Note [In-place rule]. Each was seen to fail when its clause was taken out.

#include "livepool/graph/in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph_capture/test_graphs.h"

namespace livepool {
namespace {

using ::testing::ElementsAre;
using testing::GraphBuilder;
using ::testing::IsEmpty;
using testing::LifetimesOf;
using testing::OutputsOnly;
using testing::Record;
using testing::Recorded;
using testing::Step;
using testing::Steps;

std::vector<InPlacePair> PairsOf(const OpGraph& graph, const Recorded& recorded) {
  return FindInPlacePairs(graph, LifetimesOf(graph, recorded), recorded.trace);
}
std::vector<InPlacePair> PairsOf(const OpGraph& graph) { return PairsOf(graph, Record(graph, OutputsOnly(graph))); }

//   y = make();  z = gelu(y);  use(z)        z may take the slot of y.
// Every test changes one thing.
class InPlaceTest : public ::testing::Test {
 protected:
  Value& Of(ValueId id) { return g_.graph.values[static_cast<std::size_t>(id)]; }
  Op& OpAt(OpIndex op) { return g_.graph.ops[static_cast<std::size_t>(op)]; }

  GraphBuilder g_;
  const ValueId y_ = g_.Tensor({4, 4});
  const ValueId z_ = g_.Tensor({4, 4});
  const OpIndex make_ = g_.Op("make", {}, {y_});
  const OpIndex gelu_ = g_.Op("gelu", {y_}, {z_}, {.pointwise = true});
  const OpIndex use_ = g_.Op("use", {z_}, {});
};

TEST_F(InPlaceTest, APointwiseOpMayTakeItsInputsSlot) {
  EXPECT_THAT(PairsOf(g_.graph), ElementsAre(InPlacePair{.op = gelu_, .input = y_, .predecessor = 0, .successor = 1}));
}

// 1. Pointwise, no _foreach_, one output, with a buffer of its own made in this op.

TEST_F(InPlaceTest, Clause1AnOpThatIsNotPointwiseMayNot) {
  OpAt(gelu_).pointwise = false;
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

TEST_F(InPlaceTest, Clause1AForeachOpMayNot) {
  OpAt(gelu_).name = "aten::_foreach_add.List";
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

TEST_F(InPlaceTest, Clause1AnOpOfTwoOutputsMayNot) {
  OpAt(gelu_).outputs.push_back(g_.Tensor({4, 4}));
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

TEST_F(InPlaceTest, Clause1AnOutputWithoutABufferOfItsOwnMayNot) {
  // y.mul_(x): the output is the input.
  OpAt(gelu_).outputs = {y_};
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
  // The output was made before, and the op writes into it (out=).
  OpAt(gelu_).outputs = {z_};
  OpAt(make_).outputs.push_back(z_);
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

TEST_F(InPlaceTest, Clause1AnOutputThatEscapesMayNot) {
  g_.graph.outputs = {z_};
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

// 2. The input's buffer was made by an earlier op of the pass, dies in this op, and was not seen to live longer.

TEST_F(InPlaceTest, Clause2AnInputThatIsUsedLaterStays) {
  OpAt(use_).inputs.push_back(y_);
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

// What upstream saw does not count: the calibration may have freed it early.
TEST_F(InPlaceTest, Clause2AnInputThatIsUsedLaterByTheGraphStays) {
  const Recorded recorded = Record(g_.graph, OutputsOnly(g_.graph));
  const std::vector<BufferLifetime> seen = LifetimesOf(g_.graph, recorded);
  OpAt(use_).inputs.push_back(y_);
  EXPECT_THAT(FindInPlacePairs(g_.graph, seen, recorded.trace), IsEmpty());
}

TEST_F(InPlaceTest, Clause2AnInputWhoseViewIsUsedLaterStays) {
  OpAt(use_).inputs.push_back(g_.View(y_, {4}, {1}));
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

TEST_F(InPlaceTest, Clause2AnInputThatEscapesStays) {
  g_.graph.outputs = {y_};
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

TEST_F(InPlaceTest, Clause2AnArgumentOfThePassStays) {
  OpAt(make_).outputs.clear();
  g_.graph.storages[static_cast<std::size_t>(Of(y_).storage)].kind = StorageKind::kInput;
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

TEST_F(InPlaceTest, Clause2AnInputThatIsMadeInThisOpStays) {
  Steps steps = OutputsOnly(g_.graph);
  steps[1].insert(steps[1].begin(), steps[0].begin(), steps[0].end());
  steps[0].clear();
  EXPECT_THAT(PairsOf(g_.graph, Record(g_.graph, steps)), IsEmpty());
}

TEST_F(InPlaceTest, Clause2AnInputThatWasSeenToLiveLongerStays) {
  const Recorded recorded = Record(g_.graph, OutputsOnly(g_.graph));
  std::vector<BufferLifetime> lifetimes = LifetimesOf(g_.graph, recorded);
  // ( y ) ( z ) ~y ( ) ~z
  EXPECT_EQ(lifetimes[0].lifetime.death, 6);
  ++lifetimes[0].lifetime.death;  // it is still there when the next op begins
  EXPECT_THAT(FindInPlacePairs(g_.graph, lifetimes, recorded.trace), ::testing::SizeIs(1));
  ++lifetimes[0].lifetime.death;
  EXPECT_THAT(FindInPlacePairs(g_.graph, lifetimes, recorded.trace), IsEmpty());
}

TEST_F(InPlaceTest, Clause2AStorageOfSeveralBuffersStays) {
  Steps steps = OutputsOnly(g_.graph);
  steps[0].push_back(steps[0][0]);  // resize_
  EXPECT_THAT(PairsOf(g_.graph, Record(g_.graph, steps)), IsEmpty());
}

// 3. Equal dtype, sizes and strides, dense from offset 0, covering the storage.

TEST_F(InPlaceTest, Clause3AnotherDtypeOfTheSameSizeMayNot) {
  Of(z_).dtype = 3;
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

TEST_F(InPlaceTest, Clause3OtherSizesMayNot) {
  Of(z_) = {.storage = Of(z_).storage, .dtype = Of(y_).dtype, .element_size = 4, .sizes = {2, 8}, .strides = {8, 1}};
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

// ConvNeXt and Swin: the input is permuted, the output is not, and both have as many bytes.
TEST_F(InPlaceTest, Clause3OtherStridesMayNot) {
  Of(y_).strides = {1, 4};
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
  Of(z_).strides = {1, 4};
  EXPECT_THAT(PairsOf(g_.graph), ::testing::SizeIs(1)) << "both permuted";
}

TEST_F(InPlaceTest, Clause3HolesMayNot) {
  for (const ValueId id : {y_, z_}) {
    Of(id).sizes = {4, 2};
    Of(id).strides = {4, 1};
    g_.graph.storages[static_cast<std::size_t>(Of(id).storage)].size = Of(id).DenseBytes();
  }
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

TEST_F(InPlaceTest, Clause3AnOffsetMayNot) {
  for (const ValueId id : {y_, z_}) Of(id).storage_offset = 4;
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

TEST_F(InPlaceTest, Clause3AnInputThatIsPartOfItsStorageMayNot) {
  g_.graph.storages[static_cast<std::size_t>(Of(y_).storage)].size *= 2;
  const Recorded whole = Record(g_.graph, OutputsOnly(g_.graph));
  EXPECT_THAT(PairsOf(g_.graph, whole), IsEmpty());
  Recorded equal = whole;  // even if upstream was asked for equal bytes
  equal.trace.allocations[0].size = equal.trace.allocations[1].size;
  EXPECT_THAT(PairsOf(g_.graph, equal), IsEmpty());
}

TEST_F(InPlaceTest, Clause3AnOutputThatIsPartOfItsStorageMayNot) {
  g_.graph.storages[static_cast<std::size_t>(Of(z_).storage)].size *= 2;
  Recorded equal = Record(g_.graph, OutputsOnly(g_.graph));
  equal.trace.allocations[1].size = equal.trace.allocations[0].size;
  EXPECT_THAT(PairsOf(g_.graph, equal), IsEmpty());
}

TEST_F(InPlaceTest, Clause3BuffersOfOtherSizesMayNot) {
  Recorded recorded = Record(g_.graph, OutputsOnly(g_.graph));
  recorded.trace.allocations[1].size += 64;
  EXPECT_THAT(PairsOf(g_.graph, recorded), IsEmpty());
}

// 4. No other value on the input's storage is alive in this op.

TEST_F(InPlaceTest, Clause4AnotherViewAmongTheArgumentsForbidsIt) {
  OpAt(gelu_).inputs.push_back(g_.View(y_, {4, 4}, {1, 4}));  // y + y.t()
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

TEST_F(InPlaceTest, Clause4AnElementAmongTheArgumentsForbidsIt) {
  OpAt(gelu_).inputs.push_back(g_.View(y_, {4}, {1}));  // y / y[0]
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

TEST_F(InPlaceTest, Clause4AnAliasThatIsAliveForbidsIt) {
  const ValueId alias = g_.View(y_, {4, 4}, {4, 1});
  OpAt(gelu_).inputs.push_back(alias);
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty()) << "two holders at run time";
}

TEST_F(InPlaceTest, Clause4AnAliasThatIsGoneDoesNotMatter) {
  GraphBuilder g;
  const ValueId base = g.Tensor({16});
  const ValueId y = g.View(base, {4, 4}, {4, 1});
  const ValueId z = g.Tensor({4, 4});
  g.Op("make", {}, {base});
  g.Op("view", {base}, {y});
  g.Op("gelu", {y}, {z}, {.pointwise = true});
  g.Op("use", {z}, {});
  EXPECT_THAT(PairsOf(g.graph), ElementsAre(InPlacePair{.op = 2, .input = y, .predecessor = 0, .successor = 1}));
}

TEST_F(InPlaceTest, Clause4TheSameValueTwiceDoesNotMatter) {
  OpAt(gelu_).inputs.push_back(y_);  // y * y
  EXPECT_THAT(PairsOf(g_.graph), ::testing::SizeIs(1));
}

// 5. The op does not write to the input.

TEST_F(InPlaceTest, Clause5AnInputThatTheOpWritesMayNot) {
  OpAt(gelu_).writes = {y_};
  EXPECT_THAT(PairsOf(g_.graph), IsEmpty());
}

// Chains, no trees.

TEST_F(InPlaceTest, TakesTheFirstInputThatMay) {
  GraphBuilder g;
  const ValueId kept = g.Tensor({8}), a = g.Tensor({8}), b = g.Tensor({8}), c = g.Tensor({8});
  g.Op("make", {}, {kept, a, b});
  g.Op("addcmul", {kept, a, b}, {c}, {.pointwise = true});
  g.Op("use", {c, kept}, {});
  EXPECT_THAT(PairsOf(g.graph), ElementsAre(InPlacePair{.op = 1, .input = a, .predecessor = 1, .successor = 3}));
}

TEST_F(InPlaceTest, PairsFormChains) {
  GraphBuilder g;
  const ValueId a = g.Tensor({8}), b = g.Tensor({8}), c = g.Tensor({8});
  g.Op("make", {}, {a});
  g.Op("mul", {a}, {b}, {.pointwise = true});
  g.Op("add", {b}, {c}, {.pointwise = true});
  g.Op("use", {c}, {});
  EXPECT_THAT(PairsOf(g.graph), ElementsAre(InPlacePair{.op = 1, .input = a, .predecessor = 0, .successor = 1},
                                            InPlacePair{.op = 2, .input = b, .predecessor = 1, .successor = 2}));
}

}  // namespace
}  // namespace livepool
