// Made-up programs for the simulator: layers, shapes, outputs, and all that a program may do otherwise.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "eager/event_stream.h"

namespace livepool::testing {

// How often a pass departs from its shape, as probabilities for each allocation (the last two: for each pass).
struct Divergences {
  double skipped = 0;
  double inserted = 0;
  double resized = 0;
  double freed_late = 0;  // some allocations later than usual, perhaps after the pass
  double kept = 0;        // lives for several passes
  double throws = 0;      // the pass ends by an exception somewhere
  double branches = 0;    // the pass goes through a part of its own
};

// What the loop around the passes does with its own stack frame; inside a pass all frees are deeper.
enum class Loop {
  kRebinds,  // frees the outputs of the pass before
  kSteps,    // the same, and makes a few tensors of its own between two passes
  kKeeps,    // nothing: what a pass returns is freed elsewhere
  kFlat,     // all: the passes are written out in the loop's body
};

struct ProgramOptions {
  std::uint64_t seed = 0;
  int shapes = 1;         // input shapes, which come at random
  int allocations = 200;  // in a pass
  int outputs = 2;        // of these, alive when the pass ends; freed when the next one ends
  int common_prefix = 0;  // allocations at the begin that have the same size for all shapes
  int growing = 0;        // every so many-th allocation is larger in each pass, as a cache is; 0: none
  Divergences divergences;
  Loop loop = Loop::kRebinds;
};

// Writes passes of one program. The sites are those of repeated layers: few, and the same again and again.
class GeneratedProgram {
 public:
  explicit GeneratedProgram(const ProgramOptions& options);
  EventStream Passes(int count);

 private:
  struct Allocation {
    Site site = 0;
    Bytes size = 0;    // of the smallest shape
    int lifetime = 1;  // in allocations; longer than the pass: an output
    Site freed_at = 0;
  };
  bool Chance(double probability) { return std::uniform_real_distribution<>(0, 1)(random_) < probability; }
  int Below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }
  void AppendPass(EventStream& events);
  void AppendSteps(EventStream& events);

  const ProgramOptions options_;
  std::mt19937_64 random_;
  std::vector<Allocation> skeleton_;
  std::vector<Allocation> branch_;
  std::vector<std::int64_t> outputs_;               // of the pass before
  std::vector<std::int64_t> steps_;                 // of the loop before
  std::vector<std::pair<int, std::int64_t>> kept_;  // passes left, and what is freed then
  std::int64_t next_id_ = 0;
  int passes_ = 0;
};

}  // namespace livepool::testing
