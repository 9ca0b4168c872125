#include "livepool/backend/page_map.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "livepool/base/error.h"

namespace livepool {

void PageMap::AddReservation(std::byte* base, Bytes size) {
  std::vector<bool> pages(static_cast<std::size_t>(size / page_size_), false);
  const std::lock_guard lock(mutex_);
  reservations_.emplace(base, std::move(pages));
}

PageMap::Range PageMap::FindLocked(std::byte* address, Bytes size) noexcept {
  const auto next = reservations_.upper_bound(address);
  if (next == reservations_.begin()) return {};
  auto& [base, pages] = *std::prev(next);
  const auto first = static_cast<std::size_t>((address - base) / page_size_);
  const auto count = static_cast<std::size_t>(size / page_size_);
  if (first > pages.size() || count > pages.size() - first) return {};
  return {.pages = &pages, .first = first, .count = count};
}

std::vector<std::byte*> PageMap::Missing(std::byte* address, Bytes size) {
  const std::lock_guard lock(mutex_);
  const Range range = FindLocked(address, size);
  if (range.pages == nullptr) {
    throw Error("page map: a range of " + FormatBytes(size) +
                " is not inside one reservation. Map only what Reserve of the same backend returned.");
  }
  std::vector<std::byte*> missing;
  for (std::size_t i = 0; i < range.count; ++i) {
    if (!(*range.pages)[range.first + i]) missing.push_back(address + static_cast<Bytes>(i) * page_size_);
  }
  return missing;
}

void PageMap::Set(std::byte* address, Bytes size, bool has_memory) noexcept {
  const std::lock_guard lock(mutex_);
  const Range range = FindLocked(address, size);
  if (range.pages == nullptr) return;
  std::fill_n(range.pages->begin() + static_cast<std::ptrdiff_t>(range.first), range.count, has_memory);
}

}  // namespace livepool
