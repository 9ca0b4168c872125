// A slot table on every arena that it has met.
#pragma once

#include <map>
#include <mutex>
#include <utility>

#include "livepool/pool/planned_arena.h"
#include "livepool/pool/slot_table.h"

namespace livepool {

// Binds at the first meeting with an arena and unbinds in the destructor. Any thread.
class ArenaBindings {
 public:
  explicit ArenaBindings(SlotTable table) : table_(std::move(table)) {}
  ~ArenaBindings() {
    for (const auto& [arena, bound] : bound_) arena->Unbind(bound);
  }
  ArenaBindings(const ArenaBindings&) = delete;
  ArenaBindings& operator=(const ArenaBindings&) = delete;

  const SlotTable& table() const { return table_; }

  // The table at the addresses of `arena`.
  const BoundTable& On(PlannedArena& arena) {
    const std::lock_guard lock(mutex_);
    BoundTable*& bound = bound_[&arena];
    if (bound == nullptr) bound = arena.Bind(table_);
    return *bound;
  }

 private:
  const SlotTable table_;
  std::mutex mutex_;  // for bound_
  std::map<PlannedArena*, BoundTable*> bound_;
};

}  // namespace livepool
