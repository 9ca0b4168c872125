#include "livepool/pool/arena.h"

#include <algorithm>
#include <string>

#include "livepool/backend/granules.h"
#include "livepool/base/error.h"

namespace livepool {

Arena::Arena(Backend& backend, Bytes reserve)
    : backend_(backend), reserved_(WholeGranules(reserve, backend.Granularity())), base_(backend.Reserve(reserved_)) {}

void Arena::Grow(Bytes bytes) {
  if (bytes <= mapped()) return;  // the usual case: the plan fits, nothing is locked
  if (bytes > reserved_) {
    throw OutOfMemory("arena on " + backend_.Name() + ": " + FormatBytes(bytes) + " asked for, but only " +
                          FormatBytes(reserved_) + " of address space are reserved. Create it with a larger range.",
                      bytes);
  }
  const std::lock_guard lock(mutex_);
  const Bytes old_mapped = mapped();
  const Bytes new_mapped = AlignUp(bytes, backend_.Granularity());
  if (new_mapped <= old_mapped) return;  // another thread was faster
  backend_.Map(base_ + old_mapped, new_mapped - old_mapped);
  mapped_.store(new_mapped, std::memory_order_release);
}

Bytes Arena::Trim(Bytes keep) {
  const std::lock_guard lock(mutex_);
  const Bytes old_mapped = mapped();
  if (pinned() || keep >= old_mapped) return 0;
  const Bytes new_mapped = AlignUp(std::max<Bytes>(keep, 0), backend_.Granularity());
  if (new_mapped == old_mapped) return 0;
  // Lowered first: mapped() never promises memory that is going away.
  mapped_.store(new_mapped, std::memory_order_release);
  backend_.Unmap(base_ + new_mapped, old_mapped - new_mapped);
  return old_mapped - new_mapped;
}

void Arena::Pin() {
  const std::lock_guard lock(mutex_);
  pins_.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace livepool
