#include "livepool/pool/planned_arena.h"

#include <algorithm>
#include <optional>

#include "livepool/pool/forked.h"
#include "livepool/pool/thread_state.h"

namespace livepool {
namespace {

constexpr char kVisitor = 0;  // its address is the holder that a visitor sets

}  // namespace

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

bool PlannedArena::Take(const void* holder) {
  const void* found = nullptr;
  while (!holder_.compare_exchange_strong(found, holder, std::memory_order_acquire)) {
    if (found != &kVisitor) return false;
    holder_.wait(&kVisitor, std::memory_order_relaxed);
    found = nullptr;
  }
  ApplyRemoteFrees();
  meter_.StartPeak();
  return true;
}

class PlannedArena::Visit {
 public:
  explicit Visit(PlannedArena& arena) : arena_(arena), taken_(arena.Take(&kVisitor)) {}
  ~Visit() {
    if (!taken_) return;
    arena_.holder_.store(nullptr, std::memory_order_release);
    arena_.holder_.notify_all();
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  explicit operator bool() const { return taken_; }

 private:
  PlannedArena& arena_;
  const bool taken_;
};

bool PlannedArena::TryHold() {
  if (!Take(CurrentThreadToken())) return false;
  PurgeRetired();
  return true;
}

void PlannedArena::Release() {
  ApplyRemoteFrees();
  meter_.StartPeak();
  holder_.store(nullptr, std::memory_order_release);
}

void PlannedArena::Settle() {
  if (remote_.load(std::memory_order_relaxed) == nullptr) return;
  if (holder_.load(std::memory_order_relaxed) == CurrentThreadToken())
    ApplyRemoteFrees();
  else
    const Visit visit(*this);
}

ArenaPicture PlannedArena::Picture() {
  const bool mine = holder_.load(std::memory_order_relaxed) == CurrentThreadToken();
  std::optional<Visit> visit;
  if (mine)
    ApplyRemoteFrees();
  else
    visit.emplace(*this);
  ArenaPicture picture{.base = arena_.base(),
                       .mapped = arena_.mapped(),
                       .live_bytes = LiveBytes(),
                       .pinned = arena_.pinned(),
                       .serving = !mine && !*visit};
  if (picture.serving) return picture;
  live_.ForEach([&](const Slot& slot) { picture.slots.push_back({slot.begin - arena_.base(), slot.size}); });
  return picture;
}

Bytes PlannedArena::Trim() {
  const Visit visit(*this);
  return visit ? TrimHeld() : 0;
}

bool PlannedArena::MakeRoom(Bytes height, Bytes tolerated) {
  ForgetReturnedLoans();
  const std::byte* const end = arena_.base() + height;
  for (const auto& loan : loans_) {
    if (loan->LentBelow(end) && !loan->Mine()) return false;
  }
  for (const auto& loan : loans_) {
    if (loan->Mine()) loan->End(Loan::By::kPass);
    if (loan->LentBelow(end)) return false;  // another thread is giving it back just now
  }
  return LiveBelow(height) <= tolerated;
}

// The tensor's reference is dropped last: then all that it does is done.
void PlannedArena::ForgetReturnedLoans() {
  std::erase_if(loans_, [](const std::shared_ptr<Loan>& loan) { return loan.use_count() == 1; });
}

Bytes PlannedArena::BytesInUse() {
  ForgetReturnedLoans();
  const std::byte* end = live_.End() == nullptr ? arena_.base() : live_.End();
  for (const auto& loan : loans_) end = std::max(end, loan->end());
  return end - arena_.base();
}

Bytes PlannedArena::TrimHeld() {
  const Bytes freed = arena_.Trim(BytesInUse());
  if (freed == 0) return 0;
  const std::lock_guard lock(tables_mutex_);
  ForEachSlotLocked([](Slot& slot) { slot.zeroed = false; });  // perhaps on bytes that are gone
  return freed;
}

// Perhaps another thread has freed the tensor that is in the way.
bool PlannedArena::ClaimAfterRemoteFrees(Slot& slot, bool join) {
  if (remote_.load(std::memory_order_relaxed) == nullptr) return false;
  ApplyRemoteFrees();
  return Claim(slot, join);
}

void PlannedArena::ZeroOnce(Slot& slot) {
  if (slot.zeroed) return;
  arena_.backend().Fill(slot.begin, slot.size, std::byte{0}, stream_);
  slot.zeroed = true;
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
  meter_.Freed(count, slot.live == 0 ? slot.size : 0);
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
