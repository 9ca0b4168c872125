// The packing instance: which buffers are alive when, and how large they are.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "livepool/base/units.h"

namespace livepool {

// A point on the event clock of a pass. Only the order matters.
using Time = std::int64_t;

// Half-open: alive at `birth`, no longer alive at `death`; birth < death.
struct Lifetime {
  Time birth = 0;
  Time death = 0;

  bool Overlaps(const Lifetime& other) const { return birth < other.death && other.birth < death; }
  friend bool operator==(const Lifetime&, const Lifetime&) = default;
};

// One thing to place. A chain of in-place buffers is one Buffer here: it has one range for all its life.
struct Buffer {
  std::int64_t id = 0;  // unique in its problem; the tie-break of every order
  Lifetime lifetime;
  Bytes size = 0;       // > 0, already rounded to what the arena rounds to
  Bytes alignment = 1;  // > 0; the offset is a multiple of it
  // Where the buffer must lie, if it may not move (an obstacle).
  std::optional<Bytes> fixed_offset = std::nullopt;

  friend bool operator==(const Buffer&, const Buffer&) = default;
};

struct Problem {
  std::vector<Buffer> buffers;

  friend bool operator==(const Problem&, const Problem&) = default;
};

}  // namespace livepool
