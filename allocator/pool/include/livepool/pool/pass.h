// One run of a planned region: serves its allocations from slots.
#pragma once

#include "livepool/base/env.h"
#include "livepool/pool/arena_pool.h"
#include "livepool/pool/server.h"
#include "livepool/pool/thread_state.h"

namespace livepool {

// From construction to destruction the calling thread's allocations on the pool's device are matched to
// `table` by (op, n-th allocation inside the op), and served from its slots. Used by one thread.
// Serving ends in the destructor, so it ends on exceptions too.
class Pass final : public Server {
 public:
  // `arena` is held by the calling thread and outlives the pass; `table` is bound to it.
  Pass(ArenaPool& pool, PlannedArena& arena, const BoundTable& table, StreamHandle stream, Fill fill);
  ~Pass() override;
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  PlannedArena* arena() const override { return &arena_; }
  Bytes height() const override { return table_.height; }

  // Moves the cursor to `op`. `giver`: start of a storage that an input of the op, which dies in it, holds
  // alone, as the executor has verified: a planned in-place allocation may take its slot. Null: none.
  void BeginOp(OpIndex op, const void* giver) {
    next_ = table_.first_of_op[static_cast<std::size_t>(op)];
    end_ = table_.first_of_op[static_cast<std::size_t>(op) + 1];
    giver_ = giver;
  }
  // Between ops nothing is foreseen: what is asked for goes upstream.
  void EndOp() { next_ = end_; }

  // The address for an allocation of `size` > 0 bytes on `stream`, or null: it goes upstream.
  std::byte* Serve(Bytes size, StreamHandle stream);
  std::byte* Serve(Bytes size, StreamHandle stream, const void*) override { return Serve(size, stream); }

  std::int64_t hits() const { return hits_; }
  std::int64_t misses() const { return misses_; }

 private:
  ArenaPool& pool_;
  PlannedArena& arena_;
  const BoundTable& table_;
  const StreamHandle stream_;
  const Bytes alignment_;
  Server* const outer_;  // the pass of this thread that this one interrupts
  std::uint32_t next_ = 0;
  std::uint32_t end_ = 0;
  const void* giver_ = nullptr;
  std::int64_t hits_ = 0;
  std::int64_t misses_ = 0;
  std::int64_t upstream_ = 0;
};

}  // namespace livepool
