#include "livepool/pool/planned_arena.h"

#include <algorithm>

#include "livepool/pool/forked.h"
#include "livepool/pool/thread_state.h"

namespace livepool {

BoundTable* PlannedArena::Bind(const SlotTable& table) {
  auto bound = std::make_unique<BoundTable>();
  bound->first_of_op = table.first_of_op;
  bound->height = table.height;
  bound->slots = std::vector<Slot>(table.ranges.size());
  std::vector<AddressCell*> cells(table.ranges.size());
  for (std::size_t i = 0; i < table.ranges.size(); ++i) {
    bound->slots[i].begin = arena_.base() + table.ranges[i].offset;
    bound->slots[i].size = table.ranges[i].size;
    cells[i] = &addresses_.Add(bound->slots[i].begin);
  }
  bound->entries.reserve(table.allocations.size());
  for (const PlannedAllocation& allocation : table.allocations) {
    BoundTable::Entry& entry = bound->entries.emplace_back();
    entry.size = allocation.size;
    entry.in_place = allocation.in_place;
    if (allocation.range == PlannedAllocation::kUpstream) continue;
    entry.slot = &bound->slots[static_cast<std::size_t>(allocation.range)];
    entry.cell = cells[static_cast<std::size_t>(allocation.range)];
  }
  const std::lock_guard lock(tables_mutex_);
  return tables_.emplace_back(std::move(bound)).get();
}

void PlannedArena::Unbind(BoundTable* table) {
  if (InForkedChild()) return;
  const std::lock_guard lock(tables_mutex_);
  const auto it = std::find_if(tables_.begin(), tables_.end(), [&](const auto& each) { return each.get() == table; });
  retired_.push_back(std::move(*it));
  tables_.erase(it);
}

bool PlannedArena::TryHold() {
  const void* nobody = nullptr;
  if (!holder_.compare_exchange_strong(nobody, CurrentThreadToken(), std::memory_order_acquire)) return false;
  ApplyRemoteFrees();
  PurgeRetired();
  return true;
}

void PlannedArena::Release() {
  ApplyRemoteFrees();
  live_bytes_.store(live_.LiveBytes(), std::memory_order_relaxed);
  holder_.store(nullptr, std::memory_order_release);
}

Bytes PlannedArena::TrimHeld() {
  const Bytes freed = arena_.Trim(live_.End() == nullptr ? 0 : live_.End() - arena_.base());
  if (freed == 0) return 0;
  const std::lock_guard lock(tables_mutex_);
  ForEachSlotLocked([](Slot& slot) { slot.zeroed = false; });  // perhaps on bytes that are gone
  return freed;
}

std::byte* PlannedArena::Serve(const BoundTable::Entry& entry, bool join) {
  Slot& slot = *entry.slot;
  const auto take = [&] { return join ? slot.live == 1 : slot.live == 0 && live_.Insert(slot); };
  if (!take()) {
    // The range is taken, perhaps by a tensor that another thread has freed meanwhile.
    if (remote_.load(std::memory_order_relaxed) == nullptr) return nullptr;
    ApplyRemoteFrees();
    if (!take()) return nullptr;
  }
  if (++slot.live == 1) {
    entry.cell->live.store(&slot, std::memory_order_release);
    if (fill_ == Fill::kZero && !slot.zeroed) {
      arena_.backend().Fill(slot.begin, slot.size, std::byte{0}, stream_);
      slot.zeroed = true;
    }
  }
  return slot.begin;
}

void PlannedArena::Free(const void* address) noexcept {
  AddressCell* cell = addresses_.Find(static_cast<const std::byte*>(address));
  Slot* slot = cell == nullptr ? nullptr : cell->live.load(std::memory_order_acquire);
  if (slot == nullptr) return;  // not an address that was served; a deleter may not throw
  if (holder_.load(std::memory_order_relaxed) == CurrentThreadToken()) {
    Drop(*slot, 1);
  } else if (slot->remote_frees.fetch_add(1, std::memory_order_acq_rel) == 0) {
    Slot* top = remote_.load(std::memory_order_relaxed);
    do {
      slot->remote_next = top;
    } while (!remote_.compare_exchange_weak(top, slot, std::memory_order_release, std::memory_order_relaxed));
  }
}

void PlannedArena::Drop(Slot& slot, int count) noexcept {
  slot.live -= count;
  if (slot.live > 0) return;
  slot.death = clock_;
  live_.Remove(slot);
  if (fill_ == Fill::kNan) arena_.backend().Fill(slot.begin, slot.size, std::byte{0xFF}, stream_);
}

void PlannedArena::ApplyRemoteFrees() noexcept {
  Slot* slot = remote_.exchange(nullptr, std::memory_order_acquire);
  while (slot != nullptr) {
    // Read the link first: after the exchange below another free may push the slot again.
    Slot* next = slot->remote_next;
    Drop(*slot, slot->remote_frees.exchange(0, std::memory_order_acq_rel));
    slot = next;
  }
}

void PlannedArena::PurgeRetired() {
  const std::lock_guard lock(tables_mutex_);
  // A thread that frees a slot touches it only while its DataPtr still counts in `live`, so a slot that nobody
  // uses is not in `remote_` either.
  const auto unused = std::partition(retired_.begin(), retired_.end(), [](const std::unique_ptr<BoundTable>& table) {
    return std::any_of(table->slots.begin(), table->slots.end(), [](const Slot& slot) { return slot.live > 0; });
  });
  if (unused == retired_.end()) return;
  // Cells and hints may point into what goes now.
  for (auto table = unused; table != retired_.end(); ++table) {
    for (Slot& slot : (*table)->slots) {
      AddressCell& cell = *addresses_.Find(slot.begin);
      if (cell.live.load(std::memory_order_relaxed) == &slot) cell.live.store(nullptr, std::memory_order_relaxed);
    }
  }
  retired_.erase(unused, retired_.end());
  ForEachSlotLocked([](Slot& slot) { slot.left_hint = nullptr; });
}

template <typename Function>
void PlannedArena::ForEachSlotLocked(Function function) {
  for (const auto* tables : {&tables_, &retired_}) {
    for (const std::unique_ptr<BoundTable>& table : *tables) {
      for (Slot& slot : table->slots) function(slot);
    }
  }
}

}  // namespace livepool
