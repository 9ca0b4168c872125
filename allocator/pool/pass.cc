#include "livepool/pool/pass.h"

namespace livepool {

Pass::Pass(ArenaPool& pool, PlannedArena& arena, const BoundTable& table, StreamHandle stream, Fill fill)
    : pool_(pool),
      arena_(arena),
      table_(table),
      stream_(stream),
      alignment_(pool.backend().Alignment()),
      outer_(CurrentThread().pass) {
  arena_.SetFill(fill, stream);
  CurrentThread().pass = this;
}

Pass::~Pass() {
  CurrentThread().pass = outer_;
  pool_.Count(hits_, misses_, upstream_);
}

// Note [In-place slots]
// A planned in-place allocation has the same range as a buffer that is still alive: the op's input, which
// dies in this op. Three parties must agree before two DataPtrs share it: the plan (graph_capture/in_place),
// the executor for this very op and run (`giver_`: the input holds its storage alone, and it is this slot),
// and the slot (its live count is one). Otherwise the allocation is a miss, which is always right.
std::byte* Pass::Serve(Bytes size, StreamHandle stream) {
  if (next_ == end_) {
    ++misses_;
    return nullptr;
  }
  const BoundTable::Entry& entry = table_.entries[next_++];
  if (entry.slot == nullptr) {
    ++upstream_;
    return nullptr;
  }
  const bool fits = AlignUp(size, alignment_) == entry.size && stream == stream_ && (!entry.in_place || giver_ == entry.slot->begin);
  std::byte* address = fits ? arena_.Serve(entry, entry.in_place) : nullptr;
  ++(address != nullptr ? hits_ : misses_);
  return address;
}

}  // namespace livepool
