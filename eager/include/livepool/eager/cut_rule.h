// Where a thread's allocations are cut into passes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "livepool/eager/key.h"

namespace livepool {

// The last sites of a thread, hashed.
class SiteContext {
 public:
  static constexpr std::size_t kLength = 4;

  void Add(Site site) { sites_ = {sites_[1], sites_[2], sites_[3], site}; }
  // Of the last site, or of the last kLength.
  std::uint64_t Last() const { return Extend(kNoKeys, {.site = sites_.back()}); }
  std::uint64_t All() const {
    std::uint64_t hash = kNoKeys;
    for (const Site site : sites_) hash = Extend(hash, {.site = site});
    return hash;
  }

 private:
  std::array<Site, kLength> sites_{};
};

// Note [Frees mark the ends of passes]
// When a loop variable is overwritten, its tensor is freed from the loop's own stack frame, which is shallower than
// all that the loop calls. So a pass begins with the first allocation after a free at the loop's depth. That alone is
// too often where the loop itself calls operators, and never where it frees nothing; so a pass also has to begin at a
// certain site, or after certain sites.
struct CutRule {
  Site level = 0;                     // a free at this depth or less came before; Token::kNoFree: none is needed
  bool after_sites = false;           // `starts` are of SiteContext::All, not ::Last
  std::vector<std::uint64_t> starts;  // sorted

  bool Cuts(Site depth, const SiteContext& context) const {
    return depth <= level &&
           std::binary_search(starts.begin(), starts.end(), after_sites ? context.All() : context.Last());
  }
  friend bool operator==(const CutRule&, const CutRule&) = default;
};

}  // namespace livepool
