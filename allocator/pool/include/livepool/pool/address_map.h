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
  // Open addressing; size is a power of two and at least twice the number of cells.
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

}  // namespace livepool
