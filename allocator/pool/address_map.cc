#include "livepool/pool/address_map.h"

namespace livepool {

void AddressMap::Table::Put(AddressCell* cell) {
  std::size_t i = Hash(cell->address) & mask;
  while (entries[i].load(std::memory_order_relaxed) != nullptr) i = (i + 1) & mask;
  entries[i].store(cell, std::memory_order_release);
}

AddressCell& AddressMap::Add(const std::byte* address) {
  const std::lock_guard lock(mutex_);
  if (AddressCell* cell = Find(address)) return *cell;
  // What may throw comes first, and a table is owned before a reader can see it.
  if (tables_.empty() || (cells_.size() + 1) * 4 > tables_.back()->entries.size()) {
    auto table = std::make_unique<Table>(tables_.empty() ? 1024 : tables_.back()->entries.size() * 2);
    for (AddressCell& each : cells_) table->Put(&each);
    tables_.push_back(std::move(table));
    current_.store(tables_.back().get(), std::memory_order_release);
  }
  AddressCell& cell = cells_.emplace_back();
  cell.address = address;
  tables_.back()->Put(&cell);
  return cell;
}

}  // namespace livepool
