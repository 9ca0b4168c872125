#include "livepool/pool/live_list.h"

namespace livepool {

Slot* LiveList::FindLeft(const Slot& slot) {
  Slot* left = &head_;
  // A hint may point to any slot that was once a neighbour. It helps only while it is live.
  if (slot.left_hint != nullptr && slot.left_hint->live > 0 && slot.left_hint->begin <= slot.begin) left = slot.left_hint;
  while (left->next != nullptr && left->next->begin <= slot.begin) left = left->next;
  return left;
}

bool LiveList::Insert(Slot& slot) {
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

void LiveList::Remove(Slot& slot) {
  slot.prev->next = slot.next;
  if (slot.next != nullptr) slot.next->prev = slot.prev;
  slot.prev = slot.next = nullptr;
}

const std::byte* LiveList::End() const {
  const std::byte* end = nullptr;
  for (const Slot* slot = head_.next; slot != nullptr; slot = slot->next) end = slot->end();
  return end;
}

Bytes LiveList::LiveBytes() const {
  Bytes sum = 0;
  for (const Slot* slot = head_.next; slot != nullptr; slot = slot->next) sum += slot->size;
  return sum;
}

bool LiveList::CheckInvariants() const {
  const Slot* left = &head_;
  for (const Slot* slot = head_.next; slot != nullptr; left = slot, slot = slot->next) {
    if (slot->prev != left || slot->live <= 0) return false;
    if (left != &head_ && left->end() > slot->begin) return false;
  }
  return true;
}

}  // namespace livepool
