#include "whole_slots.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <utility>

namespace livepool {
namespace {

using SlotIndex = std::size_t;

struct Slot {
  Bytes size = 0;  // of the buffer that opened it
  Bytes alignment = 1;

  bool Suits(const Buffer& buffer) const {
    return alignment % buffer.alignment == 0 || buffer.alignment % alignment == 0;
  }
};

class SlotMap {
 public:
  // The slot of a buffer that is born now.
  SlotIndex Take(const Buffer& buffer) {
    while (!busy_.empty() && busy_.top().first <= buffer.lifetime.birth) {
      const SlotIndex slot = busy_.top().second;
      free_.emplace(slots_[slot].size, slot);
      busy_.pop();
    }
    const SlotIndex slot = TakeFree(buffer).value_or(slots_.size());
    if (slot == slots_.size()) slots_.push_back({buffer.size, buffer.alignment});
    slots_[slot].alignment = std::max(slots_[slot].alignment, buffer.alignment);
    busy_.emplace(buffer.lifetime.death, slot);
    return slot;
  }

  // Where each slot lies: one above the other, in the order in which they were opened.
  Offsets SlotOffsets() const {
    Offsets offsets;
    offsets.reserve(slots_.size());
    Bytes top = 0;
    for (const Slot& slot : slots_) {
      offsets.push_back(AlignUp(top, slot.alignment));
      top = offsets.back() + slot.size;
    }
    return offsets;
  }

 private:
  using Death = std::pair<Time, SlotIndex>;

  std::optional<SlotIndex> TakeFree(const Buffer& buffer) {
    const auto found = std::find_if(free_.lower_bound({buffer.size, 0}), free_.end(),
                                    [&](const auto& entry) { return slots_[entry.second].Suits(buffer); });
    if (found == free_.end()) return std::nullopt;
    const SlotIndex slot = found->second;
    free_.erase(found);
    return slot;
  }

  std::vector<Slot> slots_;
  std::set<std::pair<Bytes, SlotIndex>> free_;                           // by size
  std::priority_queue<Death, std::vector<Death>, std::greater<>> busy_;  // first death on top
};

}  // namespace

RuleResult WholeSlots(const Problem& problem, Bytes limit) {
  std::vector<std::size_t> by_birth(problem.buffers.size());
  std::iota(by_birth.begin(), by_birth.end(), std::size_t{0});
  std::sort(by_birth.begin(), by_birth.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [](const Buffer& buffer) { return std::pair(buffer.lifetime.birth, buffer.id); };
    return key(problem.buffers[a]) < key(problem.buffers[b]);
  });

  SlotMap slots;
  std::vector<SlotIndex> slot_of(problem.buffers.size());
  for (const std::size_t i : by_birth) slot_of[i] = slots.Take(problem.buffers[i]);

  const Offsets slot_offsets = slots.SlotOffsets();
  Offsets offsets;
  offsets.reserve(slot_of.size());
  for (std::size_t i = 0; i < slot_of.size(); ++i) {
    offsets.push_back(slot_offsets[slot_of[i]]);
    if (offsets.back() + problem.buffers[i].size >= limit) return std::nullopt;
  }
  return offsets;
}

}  // namespace livepool
