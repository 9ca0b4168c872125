// An arena on loan, and a pass over it, from construction to destruction.
#pragma once

#include "livepool/pool/pass.h"

namespace livepool::testing {

class Loan {
 public:
  Loan(ArenaPool& pool, Bytes height, Bytes tolerated = 0) : pool_(pool), arena_(pool.Borrow(height, tolerated)) {}
  ~Loan() { pool_.Return(arena_); }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;
  PlannedArena& operator*() const { return arena_; }
  PlannedArena* operator->() const { return &arena_; }
  PlannedArena* get() const { return &arena_; }

 private:
  ArenaPool& pool_;
  PlannedArena& arena_;
};

// `table` is bound for this pass alone. The calling thread's allocations are served from it, once it has called
// BeginOp.
class RunningPass {
 public:
  RunningPass(ArenaPool& pool, const SlotTable& table, StreamHandle stream = nullptr, Fill fill = Fill::kNone)
      : loan_(pool, table.height), binding_(*loan_, table), pass_(pool, *loan_, binding_.bound, stream, fill) {}

  PlannedArena& arena() const { return *loan_; }
  const BoundTable& bound() const { return binding_.bound; }
  Pass* operator->() { return &pass_; }

 private:
  struct Binding {
    Binding(PlannedArena& where, const SlotTable& table) : arena(where), bound(*where.Bind(table)) {}
    ~Binding() { arena.Unbind(&bound); }
    Binding(const Binding&) = delete;
    Binding& operator=(const Binding&) = delete;
    PlannedArena& arena;
    BoundTable& bound;
  };
  // In this order: the pass ends first, the loan last.
  Loan loan_;
  Binding binding_;
  Pass pass_;
};

}  // namespace livepool::testing
