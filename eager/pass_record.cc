#include "livepool/eager/pass_record.h"

namespace livepool {

std::uint64_t HashOf(const std::vector<Key>& keys) {
  std::uint64_t hash = kNoKeys;
  for (const Key& key : keys) hash = Extend(hash, key);
  return hash;
}

std::uint64_t PassRecord::Hash() const { return HashOf(keys); }

}  // namespace livepool
