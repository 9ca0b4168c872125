// The live slots of all plans on one arena, by address: the check that no live byte is handed out twice.
#pragma once

#include "livepool/pool/slot.h"

namespace livepool {

// Doubly linked, sorted by address, without overlap: for all neighbours a, b: a.end() <= b.begin.
// Each slot remembers the left neighbour that it had last time; in a pass that repeats, the place to insert
// is found at once, so that a check costs O(1); otherwise it costs O(live slots).
// Not thread-safe: the holder of the arena uses it.
class LiveList {
 public:
  // Links `slot` if no live slot shares a byte with it; otherwise returns false and changes nothing.
  bool Insert(Slot& slot);
  // Unlinks a slot that Insert has linked.
  void Remove(Slot& slot);
  bool empty() const { return head_.next == nullptr; }
  // The sizes of all live slots that have a byte below `end`.
  Bytes BytesBelow(const std::byte* end) const;
  // The end of the last live slot, or null.
  const std::byte* End() const;
  Bytes LiveBytes() const;
  // By address.
  template <typename Function>
  void ForEach(Function function) const {
    for (const Slot* slot = head_.next; slot != nullptr; slot = slot->next) function(*slot);
  }
  // Re-derives the invariants above, for tests; false if one is broken.
  bool CheckInvariants() const;

 private:
  // A left neighbour for `slot`: starts from its hint if that is live and to its left, else from the head.
  Slot* FindLeft(const Slot& slot);

  Slot head_;  // sentinel: begin = end = null, left of everything
};

// Inline, as it is most of what serving and freeing cost.

inline Slot* LiveList::FindLeft(const Slot& slot) {
  Slot* left = &head_;
  // A hint may point to any slot that was once a neighbour. It helps only while it is live.
  Slot* const hint = slot.left_hint;
  if (hint != nullptr && hint->live > 0 && hint->begin <= slot.begin) left = hint;
  while (left->next != nullptr && left->next->begin <= slot.begin) left = left->next;
  return left;
}

inline bool LiveList::Insert(Slot& slot) {
  Slot* left = FindLeft(slot);
  if (left != &head_ && left->end() > slot.begin) return false;
  if (left->next != nullptr && left->next->begin < slot.end()) return false;
  slot.prev = left;
  slot.next = left->next;
  if (slot.next != nullptr) slot.next->prev = &slot;
  left->next = &slot;
  slot.left_hint = left == &head_ ? nullptr : left;
  return true;
}

inline void LiveList::Remove(Slot& slot) {
  slot.prev->next = slot.next;
  if (slot.next != nullptr) slot.next->prev = slot.prev;
  slot.prev = slot.next = nullptr;
}

}  // namespace livepool
