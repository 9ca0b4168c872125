// Time cut into sections: all that matters about time when buffers are packed.
//
//     A  +--------+                       A section is a largest set of buffers that live together. Here they
//     B     +-----------+                 are {A, B}, {B, C} and {D}. A buffer is a range of sections (B is
//     C              +------+             [0, 2)), and two buffers overlap in time exactly if their ranges do.
//     D                        +--+
//        |     0    |   1   |    2
//
// Between two sections at least one buffer dies and then one is born; so there are at most as many sections as
// buffers.
#pragma once

#include <cstddef>
#include <vector>

#include "livepool/plan/problem.h"

namespace livepool {

using SectionIndex = std::size_t;

// Half-open, never empty.
struct SectionRange {
  SectionIndex begin = 0;
  SectionIndex end = 0;
  friend bool operator==(const SectionRange&, const SectionRange&) = default;
};

struct Sections {
  std::vector<SectionRange> ranges;  // by buffer, as in problem.buffers
  std::vector<Bytes> live;           // by section: bytes alive in it; the largest is the lower bound

  SectionIndex count() const { return live.size(); }
};

// The sections of a checked problem (check_problem.h). O(n log n).
[[nodiscard]] Sections CutIntoSections(const Problem& problem);

// By buffer: the most bytes alive in one section of its range. O(n log n).
[[nodiscard]] std::vector<Bytes> PeaksAround(const Sections& sections);

}  // namespace livepool
