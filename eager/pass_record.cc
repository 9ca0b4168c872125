#include "livepool/eager/pass_record.h"

#include <algorithm>

namespace livepool {

std::uint64_t HashOf(const std::vector<Key>& keys) {
  std::uint64_t hash = kNoKeys;
  for (const Key& key : keys) hash = Extend(hash, key);
  return hash;
}

std::uint64_t PassRecord::Hash() const { return HashOf(keys); }

Bytes PassRecord::LivePeak() const {
  std::vector<Bytes> dying(size() + 1);  // [n]: freed when n allocations had been made
  Bytes live = 0;
  Bytes peak = 0;
  for (std::size_t i = 0; i < size(); ++i) {
    live += keys[i].size - dying[i];
    peak = std::max(peak, live);
    if (deaths[i] != kAlive) dying[deaths[i]] += keys[i].size;
  }
  return peak;
}

}  // namespace livepool
