// An arena with plans on it: its live slots, and who may serve from it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "livepool/base/env.h"
#include "livepool/pool/address_map.h"
#include "livepool/pool/arena.h"
#include "livepool/pool/arena_usage.h"
#include "livepool/pool/live_list.h"
#include "livepool/pool/loan.h"
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
// Whoever wants to look at an idle arena, or to trim it, holds it as a *visitor*. A visit is no pass: a thread that
// wants to hold the arena waits for its end instead of taking another arena, and a visitor never waits for a pass.

// What an arena holds at one moment, for people and tools.
struct ArenaPicture {
  std::byte* base = nullptr;
  Bytes mapped = 0;
  Bytes live_bytes = 0;
  bool pinned = false;           // a CUDA graph needs all of it
  bool serving = false;          // another thread's pass runs on it: which slots are live is known to that thread alone
  std::vector<SlotRange> slots;  // live, by address; empty while `serving`
};

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
  // The holder only: gives back the mapped bytes above the last live slot, and above the last tensor whose loan has
  // ended; returns how many (0 while pinned). The device has done all work on them.
  Bytes TrimHeld();
  // Any thread: the same for an arena that nobody holds; 0 if somebody does.
  Bytes Trim();
  // Applies the frees that wait for a holder, if no other thread holds the arena. Any thread.
  void Settle();
  // Any thread.
  bool held() const { return holder_.load(std::memory_order_relaxed) != nullptr; }
  ArenaPicture Picture();
  // The holder only: the sizes of the live slots, of all plans, that cover a byte below `height`.
  Bytes LiveBelow(Bytes height) const { return live_.BytesBelow(arena_.base() + height); }
  // The holder only: notes what a pass leaves to its caller (Note [Loans]).
  void Lend(std::shared_ptr<Loan> loan) { loans_.push_back(std::move(loan)); }
  // The holder only: true if LiveBelow(height) <= tolerated, now that the loans of the calling thread are over, and if
  // nothing is lent to other threads there.
  bool MakeRoom(Bytes height, Bytes tolerated = 0);

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
  // Any thread; frees that wait for a holder are still live in it (see Settle).
  ArenaUsage Usage() const { return meter_.Read(); }
  Bytes LiveBytes() const { return meter_.live_bytes(); }
  // The holder only.
  bool CheckInvariants() const { return live_.CheckInvariants() && live_.LiveBytes() == LiveBytes(); }

 private:
  class Visit;
  bool Take(const void* holder);
  // True if the slot may get one DataPtr more; links it if it is the first.
  bool Claim(Slot& slot, bool join) { return join ? slot.live == 1 : slot.live == 0 && live_.Insert(slot); }
  bool ClaimAfterRemoteFrees(Slot& slot, bool join);
  void ZeroOnce(Slot& slot);
  void Drop(Slot& slot, int count) noexcept;  // holder: `count` DataPtrs fewer
  void PurgeRetired();                        // holder
  void ForgetReturnedLoans();                 // holder
  Bytes BytesInUse();                         // holder: up to there tensors see the arena
  template <typename Function>
  void ForEachSlotLocked(Function function);  // holder

  Arena arena_;
  AddressMap addresses_;
  LiveList live_;
  std::vector<std::shared_ptr<Loan>> loans_;  // the holder's; of tensors that are alive, or were a moment ago
  Fill fill_ = Fill::kNone;
  std::uint32_t clock_ = 0;
  StreamHandle stream_ = nullptr;
  std::atomic<const void*> holder_{nullptr};
  std::atomic<Slot*> remote_{nullptr};
  UsageMeter meter_;
  std::mutex tables_mutex_;  // for Bind, Unbind; never while serving
  std::vector<std::unique_ptr<BoundTable>> tables_;
  std::vector<std::unique_ptr<BoundTable>> retired_;  // unbound, with slots that may be live
};

inline std::byte* PlannedArena::Serve(const BoundTable::Entry& entry, bool join) {
  Slot& slot = *entry.slot;
  if (!Claim(slot, join) && !ClaimAfterRemoteFrees(slot, join)) return nullptr;
  if (join) {
    meter_.Served(0);
    ++slot.live;
    return slot.begin;
  }
  meter_.Served(slot.size);
  slot.live = 1;
  entry.cell->live.store(&slot, std::memory_order_release);
  if (fill_ == Fill::kZero) ZeroOnce(slot);
  return slot.begin;
}

}  // namespace livepool
