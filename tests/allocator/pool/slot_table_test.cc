#include "livepool/pool/slot_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "livepool/base/error.h"

namespace livepool {
namespace {

// Two ops: the first makes two buffers, the second one of them in place, and one that goes upstream.
SlotTable Good() {
  SlotTable table;
  table.first_of_op = {0, 2, 4};
  table.ranges = {{.offset = 0, .size = 128}, {.offset = 128, .size = 64}};
  table.allocations = {{.size = 128, .range = 0},
                       {.size = 64, .range = 1},
                       {.size = 128, .range = 0, .in_place = true},
                       {.size = 4096, .range = PlannedAllocation::kUpstream}};
  table.height = 192;
  return table;
}

TEST(SlotTableTest, AGoodTablePasses) {
  EXPECT_NO_THROW(Good().Check());
  EXPECT_EQ(Good().ops(), 2U);
}

TEST(SlotTableTest, AnEmptyTablePasses) {
  EXPECT_NO_THROW(SlotTable().Check());
  EXPECT_EQ(SlotTable().ops(), 0U);
}

struct Fault {
  std::string name;
  std::function<void(SlotTable&)> make;
  std::string message;
};

class SlotTableFaultTest : public testing::TestWithParam<Fault> {};

TEST_P(SlotTableFaultTest, IsNamed) {
  SlotTable table = Good();
  GetParam().make(table);
  try {
    table.Check();
    FAIL() << "the table passed";
  } catch (const InvalidPlan& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(GetParam().message));
  }
}

const Fault kFaults[] = {
    Fault{"NoOps", [](SlotTable& t) { t.first_of_op.clear(); }, "does not cover"},
    Fault{"FirstOpStartsLate", [](SlotTable& t) { t.first_of_op.front() = 1; }, "does not cover"},
    Fault{"LastOpEndsEarly", [](SlotTable& t) { t.first_of_op.back() = 3; }, "does not cover"},
    Fault{"LastOpEndsLate", [](SlotTable& t) { t.first_of_op.back() = 5; }, "does not cover"},
    Fault{"OpsDescend", [](SlotTable& t) { t.first_of_op = {0, 3, 2, 4}; }, "descends at op 2"},
    Fault{"OpStartsBehindTheEnd", [](SlotTable& t) { t.first_of_op = {0, 5, 4}; }, "descends at op 2"},
    Fault{"NegativeOffset", [](SlotTable& t) { t.ranges[0].offset = -64; }, "leaves the arena"},
    Fault{"EmptyRange", [](SlotTable& t) { t.ranges[1].size = 0; }, "leaves the arena"},
    Fault{"RangeAboveTheHeight", [](SlotTable& t) { t.height = 191; }, "leaves the arena"},
    Fault{"OffsetNearTheLimit", [](SlotTable& t) { t.ranges[1].offset = std::numeric_limits<Bytes>::max() - 1; },
          "leaves the arena"},
    Fault{"NoSuchRange", [](SlotTable& t) { t.allocations[1].range = 2; }, "no such range"},
    Fault{"RangeBelowUpstream", [](SlotTable& t) { t.allocations[1].range = -2; }, "no such range"},
    Fault{"AllocationOfNothing", [](SlotTable& t) { t.allocations[1].size = 0; }, "of nothing"},
    Fault{"AllocationExceedsItsRange", [](SlotTable& t) { t.allocations[1].size = 65; }, "exceeds its range"},
};

INSTANTIATE_TEST_SUITE_P(Faults, SlotTableFaultTest, testing::ValuesIn(kFaults),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace livepool
