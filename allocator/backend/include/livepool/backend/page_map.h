// Which pages of which reservations have memory behind them.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "livepool/base/units.h"

namespace livepool {

// One bit for each page of each reservation; a reservation of 1 TiB in pages of 2 MiB takes 64 KiB.
// All memory is taken in AddReservation, so that Set cannot fail. Thread-safe.
class PageMap {
 public:
  explicit PageMap(Bytes page_size) : page_size_(page_size) {}

  // Adds [base, base + size), no page of which has memory. `size` is a multiple of the page size.
  void AddReservation(std::byte* base, Bytes size);
  // The pages of [address, address + size) without memory, in order of address. The range begins and ends
  // on page borders; throws Error where it is not inside one reservation.
  std::vector<std::byte*> Missing(std::byte* address, Bytes size);
  // Records that the pages of [address, address + size) have memory now, or have none.
  // Does nothing where the range is not inside one reservation.
  void Set(std::byte* address, Bytes size, bool has_memory) noexcept;

 private:
  struct Range {
    std::vector<bool>* pages = nullptr;  // of the reservation; null: the range is not inside one
    std::size_t first = 0;
    std::size_t count = 0;
  };
  Range FindLocked(std::byte* address, Bytes size) noexcept;

  const Bytes page_size_;
  std::mutex mutex_;                                      // guards what follows; never held during a driver call
  std::map<std::byte*, std::vector<bool>> reservations_;  // by base address
};

}  // namespace livepool
