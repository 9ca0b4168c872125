// A planned byte range of one arena, while tensors use it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "livepool/base/units.h"

namespace livepool {

// Many buffers share a slot's bytes over time; DataPtrs that share it at the same time (planned in-place
// pairs) are counted. Invariants: `live` > 0 iff the slot is linked in its arena's LiveList. All fields but
// the remote ones belong to the thread that holds the arena (see planned_arena.h).
struct alignas(64) Slot {  // one cache line
  std::byte* begin = nullptr;
  Bytes size = 0;

  int live = 0;          // DataPtrs on this range now
  bool zeroed = false;   // Fill::kZero has been done
  Slot* prev = nullptr;  // neighbours in the LiveList, by address
  Slot* next = nullptr;
  Slot* left_hint = nullptr;  // the left neighbour that the last insertion found

  std::atomic<int> remote_frees{0};  // frees by other threads, not yet applied to `live`
  std::uint32_t death = 0;           // the arena's clock when it died last
  Slot* remote_next = nullptr;       // link in the arena's stack of slots with remote frees

  std::byte* end() const { return begin + size; }
};

}  // namespace livepool
