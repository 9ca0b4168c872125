// Problems that are hard and yet known to fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "livepool/plan/problem.h"

namespace livepool::testing {

inline constexpr Bytes kRectangleHeight = 800;
inline constexpr Time kRectangleWidth = 400;

// A rectangle cut into pieces, again and again: what is packed is known to fit without any waste. Sizes are multiples
// of 8, so that some pieces are twins.
inline Problem CutRectangle(std::uint64_t seed, std::size_t pieces) {
  constexpr Bytes kStep = 8;
  std::mt19937_64 random(seed);
  // A cut of [0, length) in two, neither of them empty.
  const auto cut = [&](std::int64_t length) {
    return 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(length - 1));
  };
  Problem problem{{{.id = 0, .lifetime = {0, kRectangleWidth}, .size = kRectangleHeight}}};
  while (problem.buffers.size() < pieces) {
    Buffer& piece = problem.buffers[random() % problem.buffers.size()];
    Buffer other = piece;
    other.id = static_cast<std::int64_t>(problem.buffers.size());
    const Time length = piece.lifetime.death - piece.lifetime.birth;
    if (random() % 2 == 0 && length > 1) {
      piece.lifetime.death = other.lifetime.birth = piece.lifetime.birth + cut(length);
    } else if (piece.size > kStep) {
      other.size = kStep * cut(piece.size / kStep);
      piece.size -= other.size;
    } else {
      continue;
    }
    problem.buffers.push_back(other);
  }
  return problem;
}

// The same without every `every`th piece, which makes many wrong turns possible.
inline Problem HoledRectangle(std::uint64_t seed, std::size_t pieces = 400, std::int64_t every = 25) {
  Problem problem = CutRectangle(seed, pieces);
  std::erase_if(problem.buffers, [&](const Buffer& buffer) { return buffer.id % every == 3; });
  return problem;
}

// A hard rectangle in the midst of thousands of small buffers that live before and after it. A third of what is born
// (dies) with the rectangle is born up to 100 earlier (dies as much later): so the small ones have to be put around it.
//
//     bytes |         +----------+
//           |     +---| hard     |---+
//           |  . .:. .|          |.:. . .   at most a few hundred bytes live out here
//           +--------0----------400------> time
inline Problem HardCoreAmongMany(std::uint64_t seed) {
  Problem problem = HoledRectangle(seed, 250);
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  for (Buffer& buffer : problem.buffers) {
    if (buffer.lifetime.birth == 0 && below(3) == 0) buffer.lifetime.birth -= below(100);
    if (buffer.lifetime.death == kRectangleWidth && below(3) == 0) buffer.lifetime.death += below(100);
  }
  constexpr Time kFar = 3000;
  while (problem.buffers.size() < 5000) {
    const Time birth = below(2) == 0 ? -kFar + below(kFar - 10) : kRectangleWidth + below(kFar);
    problem.buffers.push_back({.id = 1000 + static_cast<std::int64_t>(problem.buffers.size()),
                               .lifetime = {birth, birth + 1 + below(9)},
                               .size = 8 * (1 + below(4))});
  }
  return problem;
}

}  // namespace livepool::testing
