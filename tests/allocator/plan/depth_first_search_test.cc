#include "depth_first_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "allocator/plan/cut_rectangle.h"
#include "allocator/plan/test_problems.h"
#include "livepool/plan/validate.h"
#include "restarts.h"

namespace livepool {
namespace {

struct Switch {
  const char* name;
  bool SearchSwitches::*idea;
};

const Switch kSwitches[] = {
    {"Bound", &SearchSwitches::bound},
    {"FewestAnswers", &SearchSwitches::fewest_answers},
    {"Split", &SearchSwitches::split},
    {"Ceiling", &SearchSwitches::ceiling},
    {"Twins", &SearchSwitches::twins},
    {"Backjump", &SearchSwitches::backjump},
    {"Nogoods", &SearchSwitches::nogoods},
    {"Restarts", &SearchSwitches::restarts},
    {"WeighFailures", &SearchSwitches::weigh_failures},
};

// A search with all that it refers to.
struct ReadySearch {
  ReadySearch(const Problem& p, const SearchSwitches& switches, std::uint64_t seed = 0)
      : problem(p),
        sections(CutIntoSections(problem)),
        units(*MakeSearchProblem(problem, sections)),
        search(DepthFirstSearch::Make(units, switches, 4 * units.bound)),
        restarts(problem, sections, switches, seed, *search) {}

  SearchOutcome Solve(std::int64_t capacity, std::int64_t max_nodes = std::numeric_limits<std::int32_t>::max()) {
    return restarts.Solve(capacity, max_nodes);
  }

  Problem problem;
  Sections sections;
  SearchProblem units;
  std::unique_ptr<DepthFirstSearch> search;
  Restarts restarts;
};

void ExpectPacking(const ReadySearch& ready, std::int64_t capacity) {
  std::vector<Bytes> offsets;
  for (const std::int64_t offset : ready.search->offsets()) offsets.push_back(offset * ready.units.unit);
  const Plan plan = testing::PlanOf(ready.problem, offsets);
  EXPECT_EQ(Validate(ready.problem, plan).message, "");
  EXPECT_LE(plan.height, capacity * ready.units.unit);
}

// Sorted by its offsets, a lowest packing can be made by putting each buffer on top of those before it that it
// overlaps: so the best of all sequences is the optimum.
Bytes Optimum(const Problem& problem) {
  std::vector<std::size_t> sequence(problem.buffers.size());
  std::iota(sequence.begin(), sequence.end(), std::size_t{0});
  Bytes best = std::numeric_limits<Bytes>::max();
  do {
    std::vector<Bytes> tops(problem.buffers.size());
    Bytes height = 0;
    for (std::size_t k = 0; k < sequence.size() && height < best; ++k) {
      const Buffer& buffer = problem.buffers[sequence[k]];
      Bytes offset = 0;
      for (std::size_t j = 0; j < k; ++j) {
        if (problem.buffers[sequence[j]].lifetime.Overlaps(buffer.lifetime)) {
          offset = std::max(offset, tops[sequence[j]]);
        }
      }
      tops[sequence[k]] = offset + buffer.size;
      height = std::max(height, tops[sequence[k]]);
    }
    best = std::min(best, height);
  } while (std::next_permutation(sequence.begin(), sequence.end()));
  return best;
}

// Random problems, whose optimum is nearly always their bound, and variants of one where it is not.
std::vector<Problem> SmallProblems() {
  std::vector<Problem> problems;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    problems.push_back(testing::RandomProblem(seed, {.buffers = 7, .times = 7, .max_size = 5}));
  }
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    problems.push_back(testing::HandMade("AboveTheBound"));
    std::mt19937_64 random(seed);
    for (Buffer& buffer : problems.back().buffers) buffer.size = 4 * buffer.size + static_cast<Bytes>(random() % 2);
  }
  return problems;
}

class SearchAnswersTest : public ::testing::TestWithParam<Switch> {};

// No idea changes what can be packed: against brute force, at every capacity around the optimum, with the idea off and
// with it alone.
TEST_P(SearchAnswersTest, AreThoseOfBruteForce) {
  SearchSwitches without;
  without.*GetParam().idea = false;
  SearchSwitches alone{false, false, false, false, false, false, false, false, false};
  alone.*GetParam().idea = true;
  int above_bound = 0;
  const std::vector<Problem> problems = SmallProblems();
  for (std::size_t i = 0; i < problems.size(); ++i) {
    SCOPED_TRACE("problem " + std::to_string(i));
    const Bytes optimum = Optimum(problems[i]);
    for (const SearchSwitches& switches : {SearchSwitches{}, without, alone}) {
      ReadySearch ready(problems[i], switches);
      const std::int64_t units = optimum / ready.units.unit;
      above_bound += units > ready.units.bound ? 1 : 0;
      for (std::int64_t capacity = ready.units.bound; capacity <= units + 1; ++capacity) {
        const SearchOutcome outcome = ready.Solve(capacity);
        EXPECT_EQ(outcome, capacity < units ? SearchOutcome::kExhausted : SearchOutcome::kSolved);
        if (outcome == SearchOutcome::kSolved) ExpectPacking(ready, capacity);
      }
    }
  }
  EXPECT_GT(above_bound, 20);  // or hardly any capacity was too small
}

INSTANTIATE_TEST_SUITE_P(Ideas, SearchAnswersTest, ::testing::ValuesIn(kSwitches),
                         [](const auto& test) { return std::string(test.param.name); });

// Nodes for some of them at the height of the rectangle; those that are not solved count with the limit.
std::int64_t NodesFor(const SearchSwitches& switches) {
  constexpr std::int64_t kLimit = 20'000;
  std::int64_t nodes = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    ReadySearch ready(testing::HoledRectangle(seed), switches);
    const std::int64_t height = 800 / ready.units.unit;
    if (ready.Solve(height, kLimit) == SearchOutcome::kSolved) ExpectPacking(ready, height);
    nodes += ready.search->nodes();
  }
  return nodes;
}

class SearchEffortTest : public ::testing::TestWithParam<Switch> {};

TEST_P(SearchEffortTest, IsLessWithTheIdea) {
  SearchSwitches without;
  without.*GetParam().idea = false;
  EXPECT_LT(NodesFor({}), NodesFor(without));
}

INSTANTIATE_TEST_SUITE_P(Ideas, SearchEffortTest, ::testing::ValuesIn(kSwitches),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(DepthFirstSearch, IsTheSameWhenRunAgain) {
  const Problem problem = testing::CutRectangle(3, 40);
  ReadySearch first(problem, {}, 7);
  ReadySearch second(problem, {}, 7);
  EXPECT_EQ(first.Solve(first.units.bound, 50'000), second.Solve(second.units.bound, 50'000));
  EXPECT_EQ(first.search->nodes(), second.search->nodes());
  EXPECT_EQ(first.search->offsets(), second.search->offsets());
}

// The three widths of integers find the same: sizes times an odd number keep their divisor but need more room.
TEST(DepthFirstSearch, DoesNotDependOnTheWidthOfUnits) {
  const Problem problem = testing::CutRectangle(1, 30);
  const Sections sections = CutIntoSections(problem);
  const SearchProblem units = *MakeSearchProblem(problem, sections);
  std::vector<std::vector<std::int64_t>> offsets;
  for (const std::int64_t most : {units.bound, std::int64_t{1} << 20, std::int64_t{1} << 40}) {
    const auto search = DepthFirstSearch::Make(units, {}, most);
    Restarts restarts(problem, sections, {}, 0, *search);
    EXPECT_EQ(restarts.Solve(units.bound, 200'000), SearchOutcome::kSolved);
    offsets.push_back(search->offsets());
  }
  EXPECT_EQ(offsets[0], offsets[1]);
  EXPECT_EQ(offsets[0], offsets[2]);
}

TEST(DepthFirstSearch, StopsWhenTold) {
  const Problem problem = testing::CutRectangle(2, 200);
  const Sections sections = CutIntoSections(problem);
  const SearchProblem units = *MakeSearchProblem(problem, sections);
  const SearchSwitches slow{false, false, false, false, false, false, false, false, false};
  const auto search = DepthFirstSearch::Make(units, slow, units.bound, [] { return true; });
  Restarts restarts(problem, sections, slow, 0, *search);
  EXPECT_EQ(restarts.Solve(units.bound, 1'000'000'000), SearchOutcome::kStopped);
  EXPECT_LT(search->nodes(), 1000);
}

TEST(Luby, IsTheSequence) {
  std::vector<std::int64_t> first;
  for (std::int64_t k = 1; k <= 15; ++k) first.push_back(Luby(k));
  EXPECT_EQ(first, (std::vector<std::int64_t>{1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8}));
}

}  // namespace
}  // namespace livepool
