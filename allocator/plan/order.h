// The orders in which rules take buffers, or prefer one to another.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "livepool/plan/problem.h"
#include "sections.h"

namespace livepool {

enum class Key {
  kBirth,      // earliest birth first
  kDeath,      // latest death first
  kLifetime,   // longest first
  kSize,       // largest first
  kArea,       // largest size x lifetime first
  kPeak,       // first the buffer that lives through the highest peak of live bytes
  kSections,   // first the buffer that lives through most sections
  kAlignment,  // largest first
};

// Lexicographic; the smaller id breaks the last tie, so that an order is total.
using Order = std::vector<Key>;

// "peak, lifetime, area".
[[nodiscard]] std::string ToString(const Order& order);

// The indices of all buffers, in order.
[[nodiscard]] std::vector<std::size_t> SortBuffers(const Problem& problem, const Sections& sections,
                                                   const Order& order);

}  // namespace livepool
