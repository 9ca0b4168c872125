// Sums over a window of tokens, by which any range of it is judged at once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "livepool/eager/token_window.h"

namespace livepool {

// Allocations and bytes.
struct Amount {
  double allocations = 0, bytes = 0;

  Amount& operator+=(const Amount& other) {
    allocations += other.allocations;
    bytes += other.bytes;
    return *this;
  }
  friend Amount operator-(const Amount& a, const Amount& b) {
    return {a.allocations - b.allocations, a.bytes - b.bytes};
  }
};

class TokenSums {
 public:
  explicit TokenSums(std::span<const Token> tokens);

  std::size_t size() const { return last_.size(); }
  // Of the sites in [begin, end).
  std::uint64_t Hash(std::size_t begin, std::size_t end) const {
    return hashes_[end] - hashes_[begin] * powers_[end - begin];
  }
  Amount All(std::size_t begin, std::size_t end) const { return all_[end] - all_[begin]; }
  // What is born in [begin, end) and dies before `end`, at least: all that lives across `end` is subtracted.
  Amount DyingInside(std::size_t begin, std::size_t end) const {
    const Amount inside = dying_[end] - dying_[begin] - crossing_[end];
    return {std::max(inside.allocations, 0.0), std::max(inside.bytes, 0.0)};
  }
  std::uint64_t Start(std::size_t i, bool after_sites) const { return after_sites ? sequences_[i] : last_[i]; }

 private:
  std::vector<std::uint64_t> hashes_, powers_;
  std::vector<Amount> all_, dying_, crossing_;  // crossing_[i]: born before i, freed after i was allocated
  std::vector<std::uint64_t> last_, sequences_;
};

}  // namespace livepool
