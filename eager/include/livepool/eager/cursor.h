// Where in the plans of a scope a running pass is.
#pragma once

#include <cstdint>
#include <span>

#include "livepool/eager/unit_set.h"

namespace livepool {

// Matches the allocations of one pass, one after the other, to positions of units. A wrong match would cost memory or
// a miss, never a wrong byte: the live list of the arena decides whether a slot may be served.
//
// When an allocation is not the one that is due, then, in this order:
//  1. another unit has it at the same position, after the same keys: that unit takes over (another shape);
//  2. its site is due, with another size: the position is passed over;
//  3. it comes, with its size, within the next kSkip positions: those between are passed over;
//  4. the last three sites come within the next kWindow positions: those between are passed over (a branch not taken);
//  5. otherwise it is an insertion, and the cursor stays; after kJumpAfter of them in a row a place with the same last
//     keys is looked for in all units, and after kLostAfter there is no unit any more, only that search.
class Cursor {
 public:
  explicit Cursor(const UnitSet& units) : units_(units) {}

  // The place of the last of `keys`, which are all those of the pass so far. Unit null: none; else the keys are equal.
  UnitSet::Place Next(std::span<const Key> keys) {
    if (unit_ != nullptr && next_ < size_ && unit_keys_[next_] == keys.back()) return {unit_, next_++};
    return Resynchronise(keys);
  }

  // The unit that the pass has followed from its first allocation to the unit's last; else null.
  Unit* FollowedExactly() const { return exact_ && unit_ != nullptr && next_ == size_ ? unit_ : nullptr; }
  // How many allocations were not the one that was due; where another unit took over does not count.
  std::uint32_t divergences() const { return divergences_; }

  static constexpr Position kSkip = 4;
  static constexpr Position kWindow = 64;
  static constexpr std::uint32_t kJumpAfter = 4;
  static constexpr std::uint32_t kLostAfter = 24;

 private:
  UnitSet::Place Resynchronise(std::span<const Key> keys);
  UnitSet::Place Start(const Key& first);
  UnitSet::Place Insertion(std::span<const Key> keys);
  UnitSet::Place Follow(Unit* unit, Position position);
  UnitSet::Place Arrive(Position position, const Key& key);
  bool LastSitesAt(Position position, std::span<const Key> keys) const;

  const UnitSet& units_;
  Unit* unit_ = nullptr;
  const Key* unit_keys_ = nullptr;  // of unit_
  Position size_ = 0;               // of unit_
  Position next_ = 0;               // the position that is due
  Position insertions_at_ = 0;      // the position at which insertions_ were made
  std::uint32_t insertions_ = 0;
  std::uint32_t divergences_ = 0;
  bool exact_ = true;
};

}  // namespace livepool
