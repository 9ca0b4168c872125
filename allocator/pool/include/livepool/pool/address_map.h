// From the start address of a slot to the slot that is live there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "livepool/pool/slot.h"

namespace livepool {

// One start address of one or more plans of an arena. At most one slot is live there at a time, as two
// would overlap.
struct AddressCell {
  const std::byte* address = nullptr;
  std::atomic<Slot*> live{nullptr};
};

// Deleters get an address and nothing else (c10 wants context == data), from any thread, at any time.
// So cells never move and are never freed, and a reader needs no lock: tables are replaced whole, and the
// replaced ones stay readable (together they are smaller than the current one).
class AddressMap {
 public:
  // The cell of `address`, made at the first call. Locks; not on the serving path.
  AddressCell& Add(const std::byte* address);
  // The cell of `address`, or null. Wait-free.
  AddressCell* Find(const std::byte* address) const;

 private:
  // Fibonacci hashing (Knuth, TAOCP 3, 6.4): slots start at multiples of 64, so the low bits say nothing.
  static std::size_t Hash(const std::byte* address) {
    return static_cast<std::size_t>((reinterpret_cast<std::uintptr_t>(address) >> 6) * 0x9E3779B97F4A7C15ULL >> 20);
  }

  // Open addressing; size is a power of two and at least four times the number of cells, so that most searches
  // end at the first entry: a branch that goes another way costs more than a larger table.
  struct Table {
    explicit Table(std::size_t size) : mask(size - 1), entries(size) {}
    std::size_t mask;
    std::vector<std::atomic<AddressCell*>> entries;
    void Put(AddressCell* cell);
  };

  std::mutex mutex_;  // for Add
  std::deque<AddressCell> cells_;
  std::vector<std::unique_ptr<Table>> tables_;  // the last one is current
  std::atomic<const Table*> current_{nullptr};
};

inline AddressCell* AddressMap::Find(const std::byte* address) const {
  const Table* table = current_.load(std::memory_order_acquire);
  if (table == nullptr) return nullptr;
  for (std::size_t i = Hash(address) & table->mask;; i = (i + 1) & table->mask) {
    AddressCell* cell = table->entries[i].load(std::memory_order_acquire);
    if (cell == nullptr || cell->address == address) return cell;
  }
}

}  // namespace livepool
