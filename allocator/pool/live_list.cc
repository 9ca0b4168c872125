#include "livepool/pool/live_list.h"

namespace livepool {

const std::byte* LiveList::End() const {
  const std::byte* end = nullptr;
  for (const Slot* slot = head_.next; slot != nullptr; slot = slot->next) end = slot->end();
  return end;
}

Bytes LiveList::BytesBelow(const std::byte* end) const {
  Bytes sum = 0;
  for (const Slot* slot = head_.next; slot != nullptr && slot->begin < end; slot = slot->next) sum += slot->size;
  return sum;
}

Bytes LiveList::LiveBytes() const {
  Bytes sum = 0;
  ForEach([&](const Slot& slot) { sum += slot.size; });
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
