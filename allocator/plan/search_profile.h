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
      : pending_(MakeColumn(problem.sections)),
        level_(MakeColumn(problem.sections)),
        next_level_(MakeColumn(problem.sections)),
        least_top_(MakeColumn(problem.sections)),
        candidates_(MakeColumn(problem.sections)) {
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
        failed_section_ = item.begin;
        for (std::uint32_t s = item.begin + 1; s < item.end; ++s) {
          if (pending(s) > pending(failed_section_)) failed_section_ = s;
        }
        return false;
      }
    }
    return true;
  }

  std::uint32_t failed_section() const { return failed_section_; }

  // Of section s, after Read() was true.
  // Sum of the unplaced sizes on it.
  Unit pending(std::uint32_t s) const { return At(pending_, s); }
  // Least offset of an unplaced buffer on it, hence its true floor; kNone if there is no such buffer.
  Unit level(std::uint32_t s) const { return At(level_, s); }
  // The next larger offset on it; kNone if there is none.
  Unit next_level(std::uint32_t s) const { return At(next_level_, s); }
  // Least offset + size.
  Unit least_top(std::uint32_t s) const { return At(least_top_, s); }
  // How many buffers at its level are not raised.
  Unit candidates(std::uint32_t s) const { return At(candidates_, s); }

 private:
  struct Item {
    std::uint32_t begin;
    std::uint32_t end;
    Unit size;
  };

  // A register's worth of sections. GCC and Clang know arithmetic on these; comparisons give masks of 0 and -1.
  typedef Unit Block __attribute__((vector_size(16)));
  static constexpr std::uint32_t kLanes = 16 / sizeof(Unit);
  struct Cell {
    Block lanes;  // a class member keeps the attribute, which a template argument loses
  };
  using Column = std::vector<Cell>;  // by section, in whole blocks

  static Unit At(const Column& column, std::uint32_t s) { return column[s / kLanes].lanes[s % kLanes]; }
  static Block Fill(Unit value) { return Block{} + value; }
  static Block Choose(Block mask, Block yes, Block no) { return (mask & yes) | (~mask & no); }

  // Whole blocks: what is outside belongs to another part, which is read anew before it is used.
  void Clear(std::uint32_t begin, std::uint32_t end) {
    for (std::uint32_t b = begin / kLanes; b <= (end - 1) / kLanes; ++b) {
      pending_[b].lanes = candidates_[b].lanes = Block{};
      level_[b].lanes = next_level_[b].lanes = least_top_[b].lanes = Fill(kNone);
    }
  }

  // Returns the largest pending sum on the item's range. As offsets descend, an offset below the level is the new
  // level, and the old one is next. Lanes outside the range are masked.
  Unit Add(const OpenItem<Unit>& entry, const Item& item) {
    const std::uint32_t first = item.begin / kLanes;
    const std::uint32_t last = (item.end - 1) / kLanes;
    const Block offset = Fill(entry.offset);
    const Block size = Fill(item.size);
    const Block top = offset + size;
    const Block counted = Fill(entry.raised ? 0 : 1);
    const Block none = Fill(kNone);
    Block highest{};
    for (std::uint32_t b = first; b <= last; ++b) {
      Block in = ~Block{};
      if (b == first) in &= lanes_ >= Fill(static_cast<Unit>(item.begin % kLanes));
      if (b == last) in &= lanes_ <= Fill(static_cast<Unit>((item.end - 1) % kLanes));
      const Block sum = pending_[b].lanes + (size & in);
      pending_[b].lanes = sum;
      highest = Choose((sum & in) > highest, sum, highest);
      const Block old = level_[b].lanes;
      const Block now = Choose(in, offset, none);
      const Block lower = now < old;
      next_level_[b].lanes = Choose(lower, old, next_level_[b].lanes);
      candidates_[b].lanes = (~lower & candidates_[b].lanes) + (counted & in);
      level_[b].lanes = Choose(lower, now, old);
      const Block top_in = Choose(in, top, none);
      least_top_[b].lanes = Choose(top_in < least_top_[b].lanes, top_in, least_top_[b].lanes);
    }
    Unit largest = 0;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) largest = largest > highest[lane] ? largest : highest[lane];
    return largest;
  }

  static Column MakeColumn(std::uint32_t sections) { return Column((sections + kLanes - 1) / kLanes); }
  static Block LaneNumbers() {
    Block numbers{};
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) numbers[lane] = static_cast<Unit>(lane);
    return numbers;
  }

  std::vector<Item> items_;
  Column pending_, level_, next_level_, least_top_, candidates_;
  const Block lanes_ = LaneNumbers();
  std::uint32_t failed_section_ = 0;
};

}  // namespace livepool
