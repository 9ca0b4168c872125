#include "allocator/plan/test_problems.h"

#include <algorithm>
#include <array>
#include <random>
#include <stdexcept>
#include <utility>

#include "livepool/plan/lower_bound.h"

namespace livepool::testing {
namespace {

// std::uniform_int_distribution differs between standard libraries; the engine itself does not. In [0, n).
std::int64_t Below(std::mt19937_64& random, std::int64_t n) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
}

bool Collides(const Buffer& a, const Buffer& b) {
  return a.fixed_offset && b.fixed_offset && a.lifetime.Overlaps(b.lifetime) &&
         *a.fixed_offset < *b.fixed_offset + b.size && *b.fixed_offset < *a.fixed_offset + a.size;
}

}  // namespace

const std::vector<NamedProblem>& HandMadeProblems() {
  static const std::vector<NamedProblem> kProblems = {
      {"Empty", {}},

      {"OneBuffer", {{{.id = 7, .lifetime = {3, 9}, .size = 5}}}},

      //   A +---+               Never two at once: the bound is the largest.
      //   B     +---+
      //   C         +---+
      {"OneAfterTheOther",
       {{{.id = 1, .lifetime = {0, 2}, .size = 4},
         {.id = 2, .lifetime = {2, 4}, .size = 6},
         {.id = 3, .lifetime = {4, 6}, .size = 5}}}},

      //   A +-----------+       All at once: the bound is the sum.
      //   B +-----------+
      //   C +-----------+
      {"AllTogether",
       {{{.id = 1, .lifetime = {0, 3}, .size = 4},
         {.id = 2, .lifetime = {0, 3}, .size = 6},
         {.id = 3, .lifetime = {0, 3}, .size = 5}}}},

      //   A +-------+           Each overlaps the next one only, as the activations of a chain of layers do.
      //   B     +-------+
      //   C         +-------+
      //   D             +-------+
      {"Chain",
       {{{.id = 1, .lifetime = {0, 2}, .size = 4},
         {.id = 2, .lifetime = {1, 3}, .size = 8},
         {.id = 3, .lifetime = {2, 4}, .size = 2},
         {.id = 4, .lifetime = {3, 5}, .size = 8}}}},

      //   3 |       +--0--+       The bound is 4, and this is the skyline's plan. Every other rule ends at 5 at least.
      //   1 |    +2-+     |
      //   0 | +---3----+1-+
      //       1  2  3  4  5
      {"SkylineWins",
       {{{.id = 0, .lifetime = {3, 5}, .size = 1},
         {.id = 1, .lifetime = {4, 5}, .size = 3},
         {.id = 2, .lifetime = {2, 3}, .size = 3},
         {.id = 3, .lifetime = {1, 4}, .size = 1}}}},

      //   8 |             +--3--+         The bound is 11, and this is the plan of offset best fit by lifetime. The
      //   6 |       +---2----+            skyline and whole slots end at 12 at least.
      //   5 |             +--0--+
      //   1 | +---6----++--4--+---5---+   (5 lies at 0)
      //   0 |       +-----1---+
      //       0     2  3  4   6   7   8
      {"OffsetBestFitWins",
       {{{.id = 0, .lifetime = {5, 7}, .size = 3},
         {.id = 1, .lifetime = {2, 6}, .size = 1},
         {.id = 2, .lifetime = {2, 5}, .size = 5},
         {.id = 3, .lifetime = {5, 7}, .size = 3},
         {.id = 4, .lifetime = {4, 6}, .size = 2},
         {.id = 5, .lifetime = {6, 8}, .size = 5},
         {.id = 6, .lifetime = {0, 3}, .size = 5}}}},

      //  12 |       +---5---+-4-+        Sizes 5 and 1; the arena is full, at 13, from 4 to 8. Whole slots keep the
      //  11 |     +--9--+----10-----+    sizes apart and waste nothing. Offset best fit ends at 14 at least: a small
      //  10 |   +--6--+---3---+          one lies where the next large one has to.
      //   5 |   +---1---+----7----+
      //   0 | +------8------+ +-2-+
      //       1 2 3 4 5 6   8 9 10  12
      {"WholeSlotsWin",
       {{{.id = 1, .lifetime = {2, 6}, .size = 5},
         {.id = 2, .lifetime = {9, 11}, .size = 5},
         {.id = 3, .lifetime = {5, 9}, .size = 1},
         {.id = 4, .lifetime = {8, 10}, .size = 1},
         {.id = 5, .lifetime = {4, 8}, .size = 1},
         {.id = 6, .lifetime = {2, 5}, .size = 1},
         {.id = 7, .lifetime = {6, 11}, .size = 5},
         {.id = 8, .lifetime = {1, 8}, .size = 5},
         {.id = 9, .lifetime = {3, 6}, .size = 1},
         {.id = 10, .lifetime = {6, 12}, .size = 1}}}},

      // The bound is 9, in three places (1, 3 and 7; 2, 3, 5 and 7; 2, 6, 7 and 8). But no plan is lower than 10:
      // trying all sequences of the eight says so.
      {"AboveTheBound",
       {{{.id = 1, .lifetime = {5, 8}, .size = 5},
         {.id = 2, .lifetime = {8, 11}, .size = 2},
         {.id = 3, .lifetime = {6, 10}, .size = 1},
         {.id = 4, .lifetime = {11, 15}, .size = 3},
         {.id = 5, .lifetime = {8, 9}, .size = 3},
         {.id = 6, .lifetime = {10, 11}, .size = 2},
         {.id = 7, .lifetime = {5, 14}, .size = 3},
         {.id = 8, .lifetime = {9, 12}, .size = 2}}}},

      // Alignments that are powers of two, and two that are not multiples of each other.
      {"Aligned",
       {{{.id = 1, .lifetime = {0, 4}, .size = 3, .alignment = 1},
         {.id = 2, .lifetime = {1, 6}, .size = 5, .alignment = 8},
         {.id = 3, .lifetime = {2, 5}, .size = 4, .alignment = 6},
         {.id = 4, .lifetime = {5, 9}, .size = 9, .alignment = 4},
         {.id = 5, .lifetime = {6, 9}, .size = 1, .alignment = 16}}}},

      // Negative times, the widest lifetime there is, and sizes near the limit.
      {"Extreme",
       {{{.id = INT64_MAX, .lifetime = {INT64_MIN, INT64_MAX}, .size = Bytes{1} << 61},
         {.id = INT64_MIN, .lifetime = {-5, -4}, .size = Bytes{1} << 61},
         {.id = 0, .lifetime = {-4, 12}, .size = (Bytes{1} << 61) + 1}}}},
  };
  return kProblems;
}

const Problem& HandMade(const std::string& name) {
  const std::vector<NamedProblem>& all = HandMadeProblems();
  const auto found = std::find_if(all.begin(), all.end(), [&](const NamedProblem& p) { return p.name == name; });
  if (found == all.end()) throw std::out_of_range("no hand-made problem is called " + name);
  return found->problem;
}

Problem RandomProblem(std::uint64_t seed, const RandomShape& shape) {
  constexpr std::array<Bytes, 6> kAlignments{1, 2, 3, 8, 12, 16};
  std::mt19937_64 random(seed);
  Problem problem;
  for (std::size_t i = 0; i < shape.buffers; ++i) {
    Buffer buffer;
    buffer.id = static_cast<std::int64_t>((i * 7919) % 100'003);  // a prime modulus: distinct for i below it
    buffer.lifetime.birth = Below(random, shape.times);
    // Mostly short lives, as in a network.
    const Time longest = Below(random, 4) == 0 ? shape.times : 4;
    buffer.lifetime.death = buffer.lifetime.birth + 1 + Below(random, longest);
    buffer.size = 1 + Below(random, shape.max_size);
    if (shape.alignments) buffer.alignment = kAlignments.at(static_cast<std::size_t>(Below(random, 6)));
    if (shape.fixed_offsets && Below(random, 4) == 0) {
      buffer.fixed_offset = buffer.alignment * Below(random, 4 * shape.max_size / buffer.alignment + 1);
      const bool collides = std::any_of(problem.buffers.begin(), problem.buffers.end(),
                                        [&](const Buffer& other) { return Collides(buffer, other); });
      if (collides) buffer.fixed_offset.reset();
    }
    problem.buffers.push_back(buffer);
  }
  return problem;
}

Plan PlanOf(const Problem& problem, std::vector<Bytes> offsets) {
  Plan plan{.offsets = std::move(offsets), .height = 0, .lower_bound = LowerBound(problem), .algorithm = "by hand"};
  for (std::size_t i = 0; i < plan.offsets.size(); ++i) {
    plan.height = std::max(plan.height, plan.offsets[i] + problem.buffers.at(i).size);
  }
  return plan;
}

}  // namespace livepool::testing
