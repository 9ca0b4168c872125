#include "cut_worth.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "livepool/eager/cut_search.h"
#include "livepool/eager/scope_plans.h"

namespace livepool {
namespace {

constexpr double kAlike = 0.5;  // a pass is the commonest one, with a gap, if that much of it is equal

struct Range {
  std::size_t begin = 0, end = 0;
  std::size_t size() const { return end - begin; }
};

// How far `equal`(n) is true, which is so up to some n <= most.
template <typename Equal>
std::size_t Common(std::size_t most, const Equal& equal) {
  std::size_t low = 0;
  while (low < most) {
    const std::size_t middle = (low + most + 1) / 2;
    equal(middle) ? low = middle : most = middle - 1;
  }
  return low;
}

// The share of `pass` that is as in `model`, from its begin to a first difference and from a last one to its end.
double Alike(const TokenSums& sums, const Range& pass, const Range& model) {
  const std::size_t most = std::min(pass.size(), model.size());
  const std::size_t front = Common(most, [&](std::size_t n) {
    return sums.Hash(pass.begin, pass.begin + n) == sums.Hash(model.begin, model.begin + n);
  });
  const std::size_t back = Common(most - front, [&](std::size_t n) {
    return sums.Hash(pass.end - n, pass.end) == sums.Hash(model.end - n, model.end);
  });
  return static_cast<double>(front + back) / static_cast<double>(pass.size());
}

}  // namespace

Judgement Judge(const TokenSums& sums, const Cuts& cuts) {
  if (cuts.size() < 3) return {};
  std::vector<Range> passes;
  std::unordered_map<std::uint64_t, std::size_t> times;
  std::size_t longest = 0;
  const Range* commonest = nullptr;
  std::size_t most = 0;
  passes.reserve(cuts.size());
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const Range pass{cuts[i], cuts[i + 1]};
    if (pass.size() < kMinFoundPass || pass.size() > ScopePlans::kMaxPassLength) continue;
    longest = std::max(longest, pass.size());
    passes.push_back(pass);
    const std::size_t now = ++times[sums.Hash(pass.begin, pass.end)];
    if (now <= most) continue;
    most = now;
    commonest = &passes.back();
  }
  Amount good;
  std::size_t kinds = 0;
  for (const auto& [hash, count] : times) kinds += count > 1 ? 1 : 0;
  for (const Range& pass : passes) {
    double share = 1;
    if (times[sums.Hash(pass.begin, pass.end)] == 1) {
      share = commonest == &pass ? 0 : Alike(sums, pass, *commonest);
      if (share < kAlike) {
        ++kinds;
        continue;
      }
    }
    const Amount dying = sums.DyingInside(pass.begin, pass.end);
    good += {share * dying.allocations, share * dying.bytes};
  }
  if (good.allocations == 0) return {};
  const std::size_t begin = std::min(cuts.front(), longest);
  const std::size_t end = sums.size() - std::min(sums.size() - cuts.back(), longest);
  const Amount all = sums.All(begin, end);
  return {.worth = (good.allocations / all.allocations + good.bytes / std::max(all.bytes, 1.0)) / 2, .kinds = kinds};
}

}  // namespace livepool
