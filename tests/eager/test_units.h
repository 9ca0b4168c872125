// Keys, records and units for the tests of this folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "livepool/eager/unit.h"

namespace livepool::testing {

// One letter is one site, the digit behind it the size in units of 64 bytes: "a1 b2".
inline std::vector<Key> Keys(const std::string& text) {
  std::vector<Key> keys;
  for (std::size_t i = 0; i + 1 < text.size(); i += 3) {
    keys.push_back({.size = 64 * (text[i + 1] - '0'), .site = static_cast<Site>(text[i])});
  }
  return keys;
}

// A pass in which each buffer dies before the next but one is made.
inline PassRecord ShortLived(const std::string& text) {
  PassRecord record{.keys = Keys(text), .deaths = {}};
  const auto size = static_cast<Position>(record.size());
  for (Position i = 0; i < size; ++i) record.deaths.push_back(std::min(i + 2, size));
  return record;
}

inline std::shared_ptr<Unit> UnitOf(const std::string& text) { return Unit::Make(Kind(ShortLived(text)), 64); }

}  // namespace livepool::testing
