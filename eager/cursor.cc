#include "livepool/eager/cursor.h"

#include <algorithm>

namespace livepool {

UnitSet::Place Cursor::Follow(Unit* unit, Position position) {
  unit_ = unit;
  unit_keys_ = unit->keys().data();
  size_ = static_cast<Position>(unit->keys().size());
  next_ = position + 1;
  insertions_ = 0;
  return {unit, position};
}

// A position whose site is right, of the unit that is followed.
UnitSet::Place Cursor::Arrive(Position position, const Key& key) {
  next_ = position + 1;
  insertions_ = 0;
  return unit_keys_[position] == key ? UnitSet::Place{unit_, position} : UnitSet::Place{};
}

UnitSet::Place Cursor::Start(const Key& first) {
  if (const auto place = units_.FindAt({&first, 1}, 0)) return Follow(place->unit, 0);
  exact_ = false;
  ++divergences_;
  if (Unit* unit = units_.FindStart(first.site)) Follow(unit, 0);
  return {};
}

UnitSet::Place Cursor::Resynchronise(std::span<const Key> keys) {
  if (units_.empty()) return {};
  const Key& key = keys.back();
  if (keys.size() == 1) return Start(key);
  exact_ = false;
  if (unit_ == nullptr) return Insertion(keys);
  if (const auto place = units_.FindAt(keys, next_)) return Follow(place->unit, place->position);
  ++divergences_;
  if (next_ < size_ && unit_keys_[next_].site == key.site) return Arrive(next_, key);
  for (Position i = next_ + 1; i <= next_ + kSkip && i < size_; ++i) {
    if (unit_keys_[i] == key) return Arrive(i, key);
  }
  for (Position i = next_; i < next_ + kWindow && i < size_; ++i) {
    if (LastSitesAt(i, keys)) return Arrive(i, key);
  }
  return Insertion(keys);
}

UnitSet::Place Cursor::Insertion(std::span<const Key> keys) {
  if (unit_ == nullptr) ++divergences_;
  if (insertions_at_ != next_) insertions_ = 0;
  insertions_at_ = next_;
  ++insertions_;
  if (unit_ == nullptr || insertions_ >= kJumpAfter) {
    if (const auto place = units_.FindNear(keys, next_)) return Follow(place->unit, place->position);
  }
  if (insertions_ >= kLostAfter) unit_ = nullptr;
  return {};
}

bool Cursor::LastSitesAt(Position position, std::span<const Key> keys) const {
  constexpr Position kSites = 3;
  if (position + 1 < kSites || keys.size() < kSites) return false;
  for (Position i = 0; i < kSites; ++i) {
    if (unit_keys_[position - i].site != keys[keys.size() - 1 - i].site) return false;
  }
  return true;
}

}  // namespace livepool
