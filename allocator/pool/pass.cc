#include "livepool/pool/pass.h"

namespace livepool {

Pass::Pass(ArenaPool& pool, PlannedArena& arena, const BoundTable& table, StreamHandle stream, Fill fill)
    : Server(pool.device()),
      pool_(pool),
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
  // What dies later is not filled: the stream may be gone by then, and the next pass, on another stream, would
  // not be ordered after the fill.
  arena_.SetFill(Fill::kNone, nullptr);
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
  // That is, `size` rounded up to the alignment is entry.size, but with neither a division nor an overflow.
  const bool same_size = size <= entry.size && size > entry.size - alignment_;
  const bool fits = same_size && stream == stream_ && (!entry.in_place || giver_ == entry.slot->begin);
  std::byte* address = fits ? arena_.Serve(entry, entry.in_place) : nullptr;
  ++(address != nullptr ? hits_ : misses_);
  return address;
}

}  // namespace livepool
