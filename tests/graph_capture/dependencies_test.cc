#include "livepool/graph/dependencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph_capture/test_graphs.h"

namespace livepool {
namespace {

using ::testing::ElementsAre;
using testing::GraphBuilder;
using ::testing::IsEmpty;

TEST(DependenciesTest, AReaderComesAfterTheMaker) {
  GraphBuilder b;
  const ValueId x = b.Tensor({4}), y = b.Tensor({4}), z = b.Tensor({4});
  b.Op("make", {}, {x});
  b.Op("read", {x}, {y});
  b.Op("read", {x}, {z});
  const Dependencies found = Dependencies::Of(b.graph);
  EXPECT_THAT(found.successors, ElementsAre(ElementsAre(1, 2), IsEmpty(), IsEmpty()));
  EXPECT_THAT(found.predecessors, ElementsAre(0, 1, 1));
}

TEST(DependenciesTest, AWriterComesAfterReadersAndBeforeLaterOnes) {
  GraphBuilder b;
  const ValueId x = b.Tensor({4}), y = b.Tensor({4}), z = b.Tensor({4});
  b.Op("make", {}, {x});
  b.Op("read", {x}, {y});
  b.Op("write", {x}, {x}, {.writes = {x}});
  b.Op("read", {x}, {z});
  EXPECT_THAT(Dependencies::Of(b.graph).successors,
              ElementsAre(ElementsAre(1, 2), ElementsAre(2), ElementsAre(3), IsEmpty()));
}

TEST(DependenciesTest, AViewIsNeededByWhoUsesItAndAWriteThroughItCounts) {
  //  x ─▶ view v;  y = read x;  v += 1;  z = read x
  GraphBuilder b;
  const ValueId x = b.Tensor({4}), y = b.Tensor({4}), z = b.Tensor({4});
  const ValueId v = b.View(x, {2}, {1});
  b.Op("make", {}, {x});
  b.Op("view", {x}, {v});
  b.Op("read", {x}, {y});
  b.Op("write", {v}, {v}, {.writes = {v}});
  b.Op("read", {x}, {z});
  const Dependencies found = Dependencies::Of(b.graph);
  EXPECT_THAT(found.successors[1], ElementsAre(3));
  EXPECT_THAT(found.successors[2], ElementsAre(3));
  EXPECT_THAT(found.successors[3], ElementsAre(4));
}

TEST(DependenciesTest, EffectsAndWritesToTheCallersTensorsKeepTheirOrder) {
  GraphBuilder b;
  const ValueId input = b.Tensor({4}, StorageKind::kInput), other = b.Tensor({4}, StorageKind::kState);
  const ValueId x = b.Tensor({4}), y = b.Tensor({4});
  b.Op("rand", {}, {x}, {.effect = true});
  b.Op("pure", {}, {y});
  b.Op("item", {other}, {}, {.effect = true, .guard = true});
  b.Op("write", {input}, {input}, {.writes = {input}});
  EXPECT_THAT(Dependencies::Of(b.graph).successors, ElementsAre(ElementsAre(2), IsEmpty(), ElementsAre(3), IsEmpty()));
}

}  // namespace
}  // namespace livepool
