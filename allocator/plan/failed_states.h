// The memo of the depth-first search: states from which every way on has failed.
//
// What can follow from a state depends on the unplaced buffers (with their marks) and on the headroom above each
// section, C - level(s), and on nothing else: not on what was placed below, and not on the capacity C itself. So a
// state is known by a Zobrist hash of the former plus a weighted sum of the latter, and what failed at one capacity is
// remembered at another. A state may be forgotten; a false match would cut off a solution, and a proof that none
// exists must not rest on one, hence 128 bits.
//
// Source: Zobrist, "A new hashing method with application for game playing", 1970.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace livepool {

struct StateKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;

  friend bool operator==(const StateKey&, const StateKey&) = default;
};

// The random numbers that make up keys. The same in every run.
class StateHash {
 public:
  StateHash(std::size_t items, std::size_t sections);

  void AddItem(StateKey& key, std::size_t item, bool raised) const {
    const StateKey& code = items_[2 * item + (raised ? 1 : 0)];
    key.low ^= code.low;
    key.high ^= code.high;
  }
  void AddSection(StateKey& key, std::size_t section, std::int64_t headroom) const {
    const auto factor = static_cast<std::uint64_t>(headroom);
    key.low += sections_[section].low * factor;
    key.high += sections_[section].high * factor;
  }

 private:
  std::vector<StateKey> items_;     // without and with mark
  std::vector<StateKey> sections_;  // odd
};

// A hash table of fixed size that forgets: a key is looked for in a few neighbouring places.
class FailedStates {
 public:
  // `capacity` is a power of two.
  explicit FailedStates(std::size_t capacity) : table_(capacity) {}

  bool Contains(const StateKey& key) const {
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      if (table_[Place(key, probe)] == key) return true;
    }
    return false;
  }

  void Insert(const StateKey& key) {
    for (std::size_t probe = 0; probe < kProbes; ++probe) {
      if (table_[Place(key, probe)] == StateKey{}) {
        table_[Place(key, probe)] = key;
        return;
      }
    }
    table_[Place(key, key.high % kProbes)] = key;  // forgets one
  }

 private:
  static constexpr std::size_t kProbes = 4;
  std::size_t Place(const StateKey& key, std::size_t probe) const { return (key.low + probe) & (table_.size() - 1); }

  std::vector<StateKey> table_;  // StateKey{} where free: no state has that key in practice
};

}  // namespace livepool
