// The plans of one scope: a unit for each kind of pass, and where in them a pass may be.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "livepool/eager/unit.h"

namespace livepool {

// Immutable. A place is found by the last kContext keys of the pass; at its begin the missing ones count as equal only
// to those of another begin.
class UnitSet {
 public:
  static constexpr std::size_t kContext = 4;

  struct Place {
    Unit* unit = nullptr;
    Position position = 0;
  };

  explicit UnitSet(std::vector<std::shared_ptr<Unit>> units);

  const std::vector<std::shared_ptr<Unit>>& units() const { return units_; }
  bool empty() const { return units_.empty(); }
  // Of the largest plan, bytes: any unit of the set can take over in an arena of that size.
  Bytes height() const { return height_; }

  // The unit that has the last of `keys` (not empty) at `position`, after the same keys; the one used last, if
  // there are several.
  std::optional<Place> FindAt(std::span<const Key> keys, Position position) const;
  // The place nearest to `position`, first behind it, then before it.
  std::optional<Place> FindNear(std::span<const Key> keys, Position position) const;
  // The unit used last among those that begin at `site`; null if there is none.
  Unit* FindStart(Site site) const;

 private:
  struct Entry {
    std::uint64_t context = 0;
    Position position = 0;
    std::uint32_t unit = 0;
    auto operator<=>(const Entry&) const = default;
  };
  std::optional<Place> LastUsed(std::uint64_t context, Position position, const Key& key) const;

  std::vector<std::shared_ptr<Unit>> units_;
  std::vector<Entry> index_;  // sorted
  Bytes height_ = 0;
};

}  // namespace livepool
