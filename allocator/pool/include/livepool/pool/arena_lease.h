// An arena, from Borrow to Return.
#pragma once

#include "livepool/pool/arena_pool.h"

namespace livepool {

class ArenaLease {
 public:
  // Throws OutOfMemory, as ArenaPool::Borrow does.
  ArenaLease(ArenaPool& pool, Bytes height) : pool_(pool), arena_(pool.Borrow(height)) {}
  ~ArenaLease() { pool_.Return(arena_); }
  ArenaLease(const ArenaLease&) = delete;
  ArenaLease& operator=(const ArenaLease&) = delete;
  PlannedArena& arena() { return arena_; }

 private:
  ArenaPool& pool_;
  PlannedArena& arena_;
};

}  // namespace livepool
