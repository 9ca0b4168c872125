// An arena with plans on it: its live slots, and who may serve from it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "livepool/base/env.h"
#include "livepool/pool/address_map.h"
#include "livepool/pool/arena.h"
#include "livepool/pool/live_list.h"
#include "livepool/pool/slot_table.h"

namespace livepool {

// A SlotTable at the addresses of one arena.
struct BoundTable {
  struct Entry {           // one PlannedAllocation
    Slot* slot = nullptr;  // null: upstream
    AddressCell* cell = nullptr;
    Bytes size = 0;
    bool in_place = false;
  };
  std::vector<std::uint32_t> first_of_op;
  std::vector<Entry> entries;
  std::vector<Slot> slots;
  Bytes height = 0;
};

// Note [Who owns a slot]
// Exactly one thread holds an arena while a pass runs on it, and only the holder touches slots and the live
// list: no lock on the serving path. Any other thread, and everybody when no pass runs, hands a free over
// through a lock-free stack of slots (`remote_`), which the holder empties when it takes the arena and
// before it declares an overlap. So a slot counts as live until its holder has seen the free: conservative.
class PlannedArena {
 public:
  PlannedArena(Backend& backend, Bytes reserve) : arena_(backend, reserve) {}

  Arena& arena() { return arena_; }
  const Arena& arena() const { return arena_; }

  // Puts `table` (checked) on this arena. The result lives until Unbind, and until its last slot is free.
  BoundTable* Bind(const SlotTable& table);
  void Unbind(BoundTable* table);

  // Makes the calling thread the holder; false if there is one. Both apply remote frees.
  bool TryHold();
  void Release();
  // The holder only: gives back the mapped bytes above the last live slot; returns how many (0 while pinned).
  // The device has done all work on them.
  Bytes TrimHeld();
  // The holder only: true if no live slot of any plan covers a byte below `height`.
  bool RangeFree(Bytes height) { return !live_.AnyBelow(arena_.base() + height); }

  // The holder only: hands out the entry's range for `size` bytes (rounded), or null if a live slot covers
  // a byte of it. With `join`, the range's own live owner may share it.
  std::byte* Serve(const BoundTable::Entry& entry, bool join);
  // Any thread: one DataPtr on the slot that is live at `address` is gone. noexcept, takes no lock.
  void Free(const void* address) noexcept;

  // What is written into slots that die from now on, on which stream (the holder only).
  void SetFill(Fill fill, StreamHandle stream) {
    fill_ = fill;
    stream_ = stream;
  }
  // The holder only: the time that slots note when they die, on a clock of the holder's own.
  void SetClock(std::uint32_t now) { clock_ = now; }
  // The holder only: takes in what other threads have freed.
  void ApplyRemoteFrees() noexcept;
  // The holder only.
  Bytes LiveBytes() const { return live_.LiveBytes(); }
  bool CheckInvariants() const { return live_.CheckInvariants(); }
  // LiveBytes as of the last Release. Any thread.
  Bytes LiveBytesAtRelease() const { return live_bytes_.load(std::memory_order_relaxed); }

 private:
  void Drop(Slot& slot, int count) noexcept;  // holder: `count` DataPtrs fewer
  void PurgeRetired();                        // holder
  template <typename Function>
  void ForEachSlotLocked(Function function);  // holder

  Arena arena_;
  AddressMap addresses_;
  LiveList live_;
  Fill fill_ = Fill::kNone;
  std::uint32_t clock_ = 0;
  StreamHandle stream_ = nullptr;
  std::atomic<const void*> holder_{nullptr};
  std::atomic<Slot*> remote_{nullptr};
  std::atomic<Bytes> live_bytes_{0};
  std::mutex tables_mutex_;  // for Bind, Unbind; never while serving
  std::vector<std::unique_ptr<BoundTable>> tables_;
  std::vector<std::unique_ptr<BoundTable>> retired_;  // unbound, with slots that may be live
};

}  // namespace livepool
