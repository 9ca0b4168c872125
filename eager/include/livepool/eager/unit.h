// The plan of one kind of pass.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_set>
#include <vector>

#include "livepool/eager/kind.h"
#include "livepool/pool/arena_bindings.h"

namespace livepool {

// Immutable, but for the arenas that it has been bound to. Each planned position has a slot of its own.
class Unit {
 public:
  // Packs what `kind` knows and judges the plan; null if nothing can be planned, or if `stop` says so meanwhile.
  // Throws InvalidPlan.
  static std::shared_ptr<Unit> Make(const Kind& kind, Bytes alignment, const std::function<bool()>& stop = {});
  // The same plan without the slots of what escapes by now; nothing is moved. Null if no slot is left.
  std::shared_ptr<Unit> WithoutEscapes(const Kind& kind) const;

  const std::vector<Key>& keys() const { return keys_; }
  std::uint64_t kind_hash() const { return kind_hash_; }
  Bytes height() const { return bindings_.table().height; }
  Bytes lower_bound() const { return lower_bound_; }
  // Positions that have a slot.
  std::uint32_t planned() const { return planned_; }

  // The slots at the addresses of `arena`. Entry i is position i.
  const BoundTable& BoundTo(PlannedArena& arena) { return bindings_.On(arena); }
  // Positions whose slot in `arena` is in use and among `served`.
  std::vector<Position> LivePositions(PlannedArena& arena, const std::unordered_set<const Slot*>& served);

  // When a pass last followed it, on a clock that only orders.
  std::uint64_t last_used() const { return last_used_.load(std::memory_order_relaxed); }
  void set_last_used(std::uint64_t now) { last_used_.store(now, std::memory_order_relaxed); }

 private:
  Unit(std::vector<Key> keys, std::uint64_t kind_hash, SlotTable table, Bytes lower_bound);

  const std::vector<Key> keys_;
  const std::uint64_t kind_hash_;
  ArenaBindings bindings_;
  const Bytes lower_bound_;
  const std::uint32_t planned_;
  std::atomic<std::uint64_t> last_used_{0};
};

}  // namespace livepool
