// What the unplaced buffers of a search state look like, section by section; and the bound that prunes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "search_problem.h"

namespace livepool {

// An unplaced buffer. In every list of them the offsets descend.
template <typename Unit>
struct OpenItem {
  Unit offset = 0;         // it cannot lie lower
  std::uint16_t item = 0;  // index in SearchProblem::items
  bool raised = false;     // its offset was raised over wasted space: there is nothing below to rest on
};

template <typename Unit>
class SearchProfile {
 public:
  static constexpr Unit kNone = std::numeric_limits<Unit>::max();

  explicit SearchProfile(const SearchProblem& problem)
      : pending_(problem.sections),
        level_(problem.sections),
        next_level_(problem.sections),
        least_top_(problem.sections),
        candidates_(problem.sections) {
    for (const SearchProblem::Item& item : problem.items) {
      items_.push_back({item.begin, item.end, static_cast<Unit>(item.size)});
    }
  }

  // Reads the list of a state on sections [begin, end). False if the state is hopeless: if for some buffer i and
  // section s of its range
  //     offset(i) + sum of the sizes on s of all that are not below offset(i) > capacity,
  // the bound of pre-emptive scheduling on one machine, with offsets as release dates (Jackson, 1955; Carlier, 1982).
  // Then failed_section() is s. Without `bound` only offset(i) + size(i) > capacity is hopeless.
  bool Read(std::span<const OpenItem<Unit>> open, std::uint32_t begin, std::uint32_t end, Unit capacity, bool bound) {
    Clear(begin, end);
    for (const OpenItem<Unit>& entry : open) {
      const Item& item = items_[entry.item];
      const Unit highest = Add(entry, item);
      const Unit room = static_cast<Unit>(capacity - entry.offset);
      if (item.size > room || (bound && highest > room)) {
        const auto first = pending_.begin() + item.begin;
        failed_section_ = static_cast<std::uint32_t>(std::max_element(first, pending_.begin() + item.end) -
                                                     pending_.begin());
        return false;
      }
    }
    return true;
  }

  std::uint32_t failed_section() const { return failed_section_; }

  // Of section s, after Read() was true.
  // Sum of the unplaced sizes on it.
  Unit pending(std::uint32_t s) const { return pending_[s]; }
  // Least offset of an unplaced buffer on it, hence its true floor; kNone if there is no such buffer.
  Unit level(std::uint32_t s) const { return level_[s]; }
  // The next larger offset on it; kNone if there is none.
  Unit next_level(std::uint32_t s) const { return next_level_[s]; }
  // Least offset + size.
  Unit least_top(std::uint32_t s) const { return least_top_[s]; }
  // How many buffers at its level are not raised.
  Unit candidates(std::uint32_t s) const { return candidates_[s]; }

 private:
  struct Item {
    std::uint32_t begin;
    std::uint32_t end;
    Unit size;
  };

  void Clear(std::uint32_t begin, std::uint32_t end) {
    const auto fill = [&](std::vector<Unit>& column, Unit value) {
      std::fill(column.begin() + begin, column.begin() + end, value);
    };
    fill(pending_, 0);
    fill(level_, kNone);
    fill(next_level_, kNone);
    fill(least_top_, kNone);
    fill(candidates_, 0);
  }

  // Returns the largest pending sum on the item's range. As offsets descend, an offset below the level is the new
  // level, and the old one is next. No branches: the compiler makes it vector code.
  Unit Add(const OpenItem<Unit>& entry, const Item& item) {
    const std::size_t count = item.end - item.begin;
    Unit* const __restrict pending = pending_.data() + item.begin;
    Unit* const __restrict level = level_.data() + item.begin;
    Unit* const __restrict next_level = next_level_.data() + item.begin;
    Unit* const __restrict least_top = least_top_.data() + item.begin;
    Unit* const __restrict candidates = candidates_.data() + item.begin;
    const Unit offset = entry.offset;
    const Unit size = item.size;
    const Unit top = static_cast<Unit>(offset + size);
    const Unit counted = entry.raised ? 0 : 1;
    Unit highest = 0;
    for (std::size_t s = 0; s < count; ++s) {
      const Unit sum = static_cast<Unit>(pending[s] + size);
      pending[s] = sum;
      highest = highest > sum ? highest : sum;
      const Unit old = level[s];
      next_level[s] = offset < old ? old : next_level[s];
      candidates[s] = static_cast<Unit>((offset < old ? Unit{0} : candidates[s]) + counted);
      level[s] = offset;
      least_top[s] = least_top[s] < top ? least_top[s] : top;
    }
    return highest;
  }

  std::vector<Item> items_;
  std::vector<Unit> pending_, level_, next_level_, least_top_, candidates_;  // by section
  std::uint32_t failed_section_ = 0;
};

}  // namespace livepool
