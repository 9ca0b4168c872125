#include "livepool/pool/address_map.h"

namespace livepool {
namespace {

// Fibonacci hashing (Knuth, TAOCP 3, 6.4): slots start at multiples of 64, so the low bits say nothing.
std::size_t Hash(const std::byte* address) {
  return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(address) >> 6) * 0x9E3779B97F4A7C15ULL >> 20);
}

}  // namespace

void AddressMap::Table::Put(AddressCell* cell) {
  std::size_t i = Hash(cell->address) & mask;
  while (entries[i].load(std::memory_order_relaxed) != nullptr) i = (i + 1) & mask;
  entries[i].store(cell, std::memory_order_release);
}

AddressCell* AddressMap::Find(const std::byte* address) const {
  const Table* table = current_.load(std::memory_order_acquire);
  if (table == nullptr) return nullptr;
  for (std::size_t i = Hash(address) & table->mask;; i = (i + 1) & table->mask) {
    AddressCell* cell = table->entries[i].load(std::memory_order_acquire);
    if (cell == nullptr || cell->address == address) return cell;
  }
}

AddressCell& AddressMap::Add(const std::byte* address) {
  const std::lock_guard lock(mutex_);
  if (AddressCell* cell = Find(address)) return *cell;
  AddressCell& cell = cells_.emplace_back();
  cell.address = address;
  if (tables_.empty() || cells_.size() * 2 > tables_.back()->entries.size()) {
    auto table = std::make_unique<Table>(tables_.empty() ? 1024 : tables_.back()->entries.size() * 2);
    for (AddressCell& each : cells_) table->Put(&each);
    current_.store(table.get(), std::memory_order_release);
    tables_.push_back(std::move(table));
  } else {
    tables_.back()->Put(&cell);
  }
  return cell;
}

}  // namespace livepool
