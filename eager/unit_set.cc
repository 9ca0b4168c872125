#include "livepool/eager/unit_set.h"

#include <algorithm>

namespace livepool {
namespace {

// Of the last keys, up to kContext of them. At the begin of a pass there are fewer, and their number is hashed too.
std::uint64_t ContextOf(std::span<const Key> keys) {
  const std::size_t count = std::min(keys.size(), UnitSet::kContext);
  std::uint64_t hash = kNoKeys + count;
  for (const Key& key : keys.last(count)) hash = Extend(hash, key);
  return hash;
}

}  // namespace

UnitSet::UnitSet(std::vector<std::shared_ptr<Unit>> units) : units_(std::move(units)) {
  for (std::uint32_t unit = 0; unit < units_.size(); ++unit) {
    height_ = std::max(height_, units_[unit]->height());
    const std::span<const Key> keys = units_[unit]->keys();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      index_.push_back({.context = ContextOf(keys.first(i + 1)), .position = static_cast<Position>(i), .unit = unit});
    }
  }
  std::sort(index_.begin(), index_.end());
}

std::optional<UnitSet::Place> UnitSet::LastUsed(std::uint64_t context, Position position, const Key& key) const {
  std::optional<Place> best;
  auto it = std::lower_bound(index_.begin(), index_.end(), Entry{.context = context, .position = position});
  for (; it != index_.end() && it->context == context && it->position == position; ++it) {
    Unit* unit = units_[it->unit].get();
    // Only a hash has been compared so far, and a slot is served for its very size.
    if (!(unit->keys()[position] == key)) continue;
    if (!best || unit->last_used() > best->unit->last_used()) best = {unit, position};
  }
  return best;
}

std::optional<UnitSet::Place> UnitSet::FindAt(std::span<const Key> keys, Position position) const {
  return LastUsed(ContextOf(keys), position, keys.back());
}

std::optional<UnitSet::Place> UnitSet::FindNear(std::span<const Key> keys, Position position) const {
  const std::uint64_t context = ContextOf(keys);
  const auto at = std::lower_bound(index_.begin(), index_.end(), Entry{.context = context, .position = position});
  if (at != index_.end() && at->context == context) return LastUsed(context, at->position, keys.back());
  if (at == index_.begin()) return std::nullopt;
  const auto before = std::prev(at);
  return before->context == context ? LastUsed(context, before->position, keys.back()) : std::nullopt;
}

Unit* UnitSet::FindStart(Site site) const {
  Unit* best = nullptr;
  for (const std::shared_ptr<Unit>& unit : units_) {
    if (unit->keys().front().site != site) continue;
    if (best == nullptr || unit->last_used() > best->last_used()) best = unit.get();
  }
  return best;
}

}  // namespace livepool
