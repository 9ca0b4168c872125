#include "livepool/eager/learnt_passes.h"

#include <algorithm>

#include "livepool/base/error.h"
#include "livepool/eager/scope_plans.h"

namespace livepool {
namespace {

// Of one buffer. The longest pass of such buffers is of 2^60 bytes: no sum overflows.
constexpr Bytes kMostBytes = Bytes{1} << 44;
static_assert(kMostBytes * static_cast<Bytes>(ScopePlans::kMaxPassLength) == Bytes{1} << 60);

void CheckRecord(const PassRecord& record, std::size_t number, Bytes alignment) {
  const auto refuse = [&](const std::string& what) { throw InvalidInput("pass " + std::to_string(number) + ": " + what); };
  const std::size_t size = record.size();
  if (size == 0 || size > ScopePlans::kMaxPassLength) refuse(std::to_string(size) + " allocations");
  if (record.deaths.size() != size) {
    refuse(std::to_string(size) + " sizes, but " + std::to_string(record.deaths.size()) + " deaths");
  }
  for (std::size_t i = 0; i < size; ++i) {
    const Bytes bytes = record.keys[i].size;
    const Position death = record.deaths[i];
    if (bytes <= 0 || bytes > kMostBytes || bytes % alignment != 0) {
      refuse("allocation " + std::to_string(i) + " has " + std::to_string(bytes) + " bytes");
    }
    if (death != PassRecord::kAlive && (death <= i || death > size)) {
      refuse("allocation " + std::to_string(i) + " of " + std::to_string(size) + " dies at " + std::to_string(death));
    }
  }
}

}  // namespace

void CheckLearntPasses(const LearntPasses& learnt, Bytes alignment) {
  if (learnt.kinds.size() > ScopePlans::kMaxKinds) {
    throw InvalidInput(std::to_string(learnt.kinds.size()) + " kinds of pass, more than any scope keeps");
  }
  for (std::size_t i = 0; i < learnt.kinds.size(); ++i) CheckRecord(learnt.kinds[i], i, alignment);
  if (learnt.rule && !std::is_sorted(learnt.rule->starts.begin(), learnt.rule->starts.end())) {
    throw InvalidInput("the starts of the rule are not sorted");
  }
}

}  // namespace livepool
