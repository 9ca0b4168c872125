#include "search_conflict.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "nogoods.h"
#include "search_problem.h"
#include "search_state.h"

namespace livepool {
namespace {

using Unit = std::int32_t;

//   0 +-----4-----+         Two sections. 0 and 1 are on the first, 1 and 2 on the second.
//   1     +---3---+
//   2         +-2-+...
SearchProblem Three() {
  SearchProblem problem;
  problem.items = {{0, 1, 4}, {0, 2, 3}, {1, 2, 2}};
  problem.sections = 2;
  problem.bound = 7;
  return problem;
}

// A state in which the buffers listed are unplaced; offsets descend.
struct StateOf {
  StateOf(Unit capacity, std::vector<OpenItem<Unit>> list) : open(std::move(list)) {
    state = {0, 2, capacity, open.data(), open.size()};
  }
  std::vector<OpenItem<Unit>> open;
  SearchState<Unit> state;
};

std::vector<Unit> LeastOf(const Conflict<Unit>& conflict) { return {conflict.least().begin(), conflict.least().end()}; }

TEST(Conflict, OfASectionIsAsLowAsItsBytesAllow) {
  const StateOf tight(8, {{5, 0}, {3, 1}, {0, 2}});
  Conflict<Unit> conflict(3);
  // 4 + 3 bytes do not fit into 8 above 2. That they lie above 3 is more than is needed.
  conflict.SetToSection(Three(), tight.state, 0, 2);
  EXPECT_EQ(LeastOf(conflict), (std::vector<Unit>{2, 2, -1}));
}

TEST(Conflict, OfABufferIsTheLowestOffsetAtWhichItIsTooHigh) {
  const StateOf high(8, {{7, 0}, {3, 1}});
  Conflict<Unit> conflict(3);
  conflict.SetToItem(Three(), high.state, 0);
  EXPECT_EQ(LeastOf(conflict), (std::vector<Unit>{5, -1, -1}));
}

TEST(Conflict, HoldsWhereNoneOfItsBuffersCanLieLower) {
  const StateOf child(8, {{5, 0}, {3, 1}});
  Conflict<Unit> conflict(3);
  conflict.SetToSection(Three(), child.state, 0, 2);  // at 2 or higher
  EXPECT_TRUE(conflict.HoldsIn(StateOf(8, {{3, 0}, {2, 1}, {0, 2}}).state));
  EXPECT_FALSE(conflict.HoldsIn(StateOf(8, {{5, 0}, {1, 1}, {0, 2}}).state));
}

TEST(Conflict, WithACeilingNeedsItAboveTheOthers) {
  const StateOf state(8, {{5, 0}, {3, 1}});
  Conflict<Unit> conflict(3);
  conflict.SetToSection(Three(), state.state, 0, 2);
  conflict.AddCeiling(2);
  EXPECT_EQ(LeastOf(conflict), (std::vector<Unit>{2, 2, 2}));
}

// 0 at 0 leaves 1 at 4, where it is too high; nothing at 0 leaves both at 3, too high as well.
TEST(Refutation, MergesWhatItsAnswersHaveShown) {
  const SearchProblem problem = Three();
  const StateOf parent(6, {{0, 0}, {0, 1}, {0, 2}});
  const Question<Unit> question{
      .section = 0, .niche_begin = 0, .niche_end = 2, .level = 0, .waste_to = 2, .may_waste = false, .answers = 2};
  BumpArena arena;
  Conflict<Unit> conflict(3);
  Refutation<Unit> refutation(problem, parent.state, question, arena);
  conflict.SetToItem(problem, StateOf(6, {{4, 1}, {0, 2}}).state, 1);
  EXPECT_FALSE(conflict.HoldsIn(parent.state));
  refutation.AddPlaced(0, conflict);
  conflict.SetToItem(problem, StateOf(6, {{3, 0}, {0, 2}}).state, 0);
  EXPECT_FALSE(conflict.HoldsIn(parent.state));
  refutation.AddPlaced(1, conflict);
  conflict.SetToSection(problem, parent.state, 0, 3);  // 4 + 3 > 6 at 0 already
  EXPECT_TRUE(conflict.HoldsIn(parent.state));
  refutation.AddWasteAndFinish(conflict);
  EXPECT_EQ(LeastOf(conflict), (std::vector<Unit>{0, 0, -1}));  // 2 has nothing to do with it
}

class NogoodsTest : public ::testing::Test {
 protected:
  // 0 and 1 fail at 2 or higher within 8: with 6 above them or less.
  NogoodsTest() {
    const StateOf failed(8, {{5, 0}, {3, 1}});
    conflict_.SetToSection(Three(), failed.state, 0, 2);
    nogoods_.Learn(conflict_, 8);
  }
  bool Meets(Unit capacity, std::vector<OpenItem<Unit>> list) {
    return nogoods_.Meets(StateOf(capacity, std::move(list)).state, conflict_);
  }

  Conflict<Unit> conflict_{3};
  Nogoods<Unit> nogoods_{3};
};

TEST_F(NogoodsTest, AreMetWhateverElseIsThere) {
  EXPECT_TRUE(Meets(8, {{3, 1}, {2, 0}, {0, 2}}));
  EXPECT_FALSE(Meets(8, {{3, 1}, {1, 0}, {0, 2}})) << "0 has more room";
  EXPECT_FALSE(Meets(8, {{3, 1}, {0, 2}})) << "0 is placed";
}

TEST_F(NogoodsTest, HoldAtOtherCapacities) {
  EXPECT_TRUE(Meets(6, {{0, 0}, {0, 1}}));
  EXPECT_EQ(LeastOf(conflict_), (std::vector<Unit>{0, 0, -1}));
  EXPECT_TRUE(Meets(9, {{3, 0}, {3, 1}}));
  EXPECT_EQ(LeastOf(conflict_), (std::vector<Unit>{3, 3, -1}));
  EXPECT_FALSE(Meets(9, {{3, 0}, {2, 1}}));
}

TEST_F(NogoodsTest, AreForgottenWhenManyOthersWereLearned) {
  Conflict<Unit> other(3);
  other.SetToItem(Three(), StateOf(8, {{7, 2}}).state, 2);
  for (int i = 0; i < 63; ++i) nogoods_.Learn(other, 8);
  EXPECT_TRUE(Meets(8, {{3, 1}, {2, 0}}));
  for (int i = 0; i < 64; ++i) nogoods_.Learn(other, 8);
  EXPECT_FALSE(Meets(8, {{3, 1}, {2, 0}}));
}

}  // namespace
}  // namespace livepool
