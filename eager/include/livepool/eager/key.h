// What tells the allocations of a pass of plain eager code apart.
#pragma once

#include <cstdint>

#include "livepool/base/units.h"

namespace livepool {

// Note [The stack tells call paths apart]
// Eager code has no op index. But the same calls lead to the same stack depth: the distance, in bytes, from where the
// scope was entered to the stack frame of the allocation is equal whenever the same code runs again, and it is finer
// than the name of an op. It costs one subtraction. Two call paths can be equally deep; then the size decides.
using Site = std::uint32_t;

// Of one allocation. The stream is not part of it, since a pass serves one stream only.
struct Key {
  Bytes size = 0;  // rounded to the arena's alignment
  Site site = 0;

  friend bool operator==(const Key&, const Key&) = default;
};

// The hash of a sequence of keys, one key after the other; begin with kNoKeys.
constexpr std::uint64_t kNoKeys = 0x9E3779B97F4A7C15ULL;
constexpr std::uint64_t Extend(std::uint64_t hash, const Key& key) {
  hash = (hash ^ static_cast<std::uint64_t>(key.size)) * 0xBF58476D1CE4E5B9ULL;
  hash = (hash ^ (hash >> 29) ^ key.site) * 0x94D049BB133111EBULL;
  return hash ^ (hash >> 32);
}

}  // namespace livepool
