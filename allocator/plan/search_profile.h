// What the unplaced buffers of a search state look like, section by section; and the bound that prunes.
//
// Nearly all of the search's time is spent here. So the sections lie side by side in vector registers, a hopeless state
// is seen before anything but sums is computed, and nothing is done lane by lane.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "search_problem.h"
#include "search_state.h"

namespace livepool {

template <typename Unit>
class SearchProfile {
 public:
  static constexpr Unit kNone = std::numeric_limits<Unit>::max();

  explicit SearchProfile(const SearchProblem& problem)
      : pending_((problem.sections + kLanes - 1) / kLanes), cells_(pending_.size()) {
    for (const SearchProblem::Item& item : problem.items) {
      items_.push_back({item.begin / kLanes, (item.end - 1) / kLanes, item.begin % kLanes, (item.end - 1) % kLanes,
                        static_cast<Unit>(item.size)});
    }
  }

  // Sums up what is unplaced. Returns the index in the list of a buffer i that shows that the state is hopeless:
  //     offset(i) + size(i) > capacity, or, with `bound`, on some section s of its range
  //     offset(i) + sum of the sizes on s of all that are not below offset(i) > capacity,
  // the bound of pre-emptive scheduling on one machine, with offsets as release dates (Jackson, 1955; Carlier, 1982).
  // After the latter, pending() is that sum on i's range.
  std::optional<std::size_t> FindHopeless(const SearchState<Unit>& state, bool bound) {
    // Whole blocks: what is outside belongs to another part, which is summed up anew before it is used.
    for (std::uint32_t b = state.begin / kLanes; b <= (state.end - 1) / kLanes; ++b) pending_[b].lanes = Block{};
    for (std::size_t i = 0; i < state.count; ++i) {
      const Item& item = items_[state.open[i].item];
      const Unit room = static_cast<Unit>(state.capacity - state.open[i].offset);
      const Block most = Fill(bound ? room : kNone);
      Block over{};
      ForEachBlock(item, [&](std::uint32_t b, Block in) {
        pending_[b].lanes += Fill(item.size) & in;
        over |= (pending_[b].lanes & in) > most;
      });
      if (item.size > room || Any(over)) return i;
    }
    return std::nullopt;
  }

  // Computes all else. The state is the one that was summed up, and not hopeless.
  void Read(const SearchState<Unit>& state) {
    for (std::uint32_t b = state.begin / kLanes; b <= (state.end - 1) / kLanes; ++b) {
      cells_[b] = {Fill(kNone), Fill(kNone), Fill(kNone), Block{}};
    }
    // As offsets descend, each is the level of its sections so far, and the one before it the next level.
    for (const OpenItem<Unit>& open : state.list()) {
      const Item& item = items_[open.item];
      const Block offset = Fill(open.offset);
      const Block top = Fill(static_cast<Unit>(open.offset + item.size));
      ForEachBlock(item, [&](std::uint32_t b, Block in) {
        Cell& cell = cells_[b];
        const Block lower = in & (cell.level > offset);
        const Block new_top = in & (cell.least_top > top);
        cell.next_level = Choose(lower, cell.level, cell.next_level);
        cell.level = Choose(lower, offset, cell.level);
        cell.candidates = (cell.candidates & ~lower) - in;  // a mask is -1
        cell.least_top = Choose(new_top, top, cell.least_top);
      });
    }
  }

  // Of section s. Sum of the unplaced sizes on it.
  Unit pending(std::uint32_t s) const { return pending_[s / kLanes].lanes[s % kLanes]; }
  // Least offset of an unplaced buffer on it, hence its true floor; kNone if there is no such buffer.
  Unit level(std::uint32_t s) const { return cells_[s / kLanes].level[s % kLanes]; }
  // The next larger offset on it; kNone if there is none.
  Unit next_level(std::uint32_t s) const { return cells_[s / kLanes].next_level[s % kLanes]; }
  // Least offset + size.
  Unit least_top(std::uint32_t s) const { return cells_[s / kLanes].least_top[s % kLanes]; }
  // How many buffers lie at its level.
  Unit candidates(std::uint32_t s) const { return cells_[s / kLanes].candidates[s % kLanes]; }

 private:
  // A register's worth of sections. GCC and Clang know arithmetic on these; comparisons give masks of 0 and -1.
  typedef Unit Block __attribute__((vector_size(16)));
  static constexpr std::uint32_t kLanes = 16 / sizeof(Unit);
  struct Sums {
    Block lanes;  // a class member keeps the attribute, which a template argument loses
  };
  struct Cell {
    Block level, next_level, least_top, candidates;
  };
  struct Item {
    std::uint32_t first_block;
    std::uint32_t last_block;
    std::uint32_t first_lane;  // of the first block
    std::uint32_t last_lane;   // of the last one
    Unit size;
  };
  // Masks of the lanes from one on, and up to one.
  struct Masks {
    std::array<Sums, kLanes> from, up_to;
  };

  static Block Fill(Unit value) { return Block{} + value; }
  static Block Choose(Block mask, Block yes, Block no) { return (mask & yes) | (~mask & no); }
  static bool Any(Block mask) {
    typedef std::uint64_t Halves __attribute__((vector_size(16)));
    const auto halves = reinterpret_cast<Halves>(mask);
    return (halves[0] | halves[1]) != 0;
  }

  // Calls `use` with each block that the item touches, and the mask of its sections there.
  template <typename Use>
  void ForEachBlock(const Item& item, Use use) const {
    if (item.first_block == item.last_block) {
      use(item.first_block, masks_.from[item.first_lane].lanes & masks_.up_to[item.last_lane].lanes);
      return;
    }
    use(item.first_block, masks_.from[item.first_lane].lanes);
    for (std::uint32_t b = item.first_block + 1; b < item.last_block; ++b) use(b, ~Block{});
    use(item.last_block, masks_.up_to[item.last_lane].lanes);
  }

  static Masks MakeMasks() {
    Masks masks{};
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      for (std::uint32_t i = 0; i < kLanes; ++i) {
        masks.from[lane].lanes[i] = i >= lane ? -1 : 0;
        masks.up_to[lane].lanes[i] = i <= lane ? -1 : 0;
      }
    }
    return masks;
  }

  std::vector<Item> items_;
  std::vector<Sums> pending_;  // as cells_, by block of sections
  std::vector<Cell> cells_;
  const Masks masks_ = MakeMasks();
};

}  // namespace livepool
