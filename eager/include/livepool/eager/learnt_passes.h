// What was learnt of a program's passes, to be kept for its next process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "livepool/base/units.h"
#include "livepool/eager/cut_rule.h"
#include "livepool/eager/pass_record.h"

namespace livepool {

// Of one scope, or of the passes that were found on one thread. Nothing depends on it but hits: what does not come again
// is not served, and forgotten in time.
struct LearntPasses {
  std::string scope;            // its name; empty: found
  std::optional<CutRule> rule;  // of found passes only
  // One record a kind of pass. Its deaths are the lifetimes to plan with; what escapes is PassRecord::kAlive.
  std::vector<PassRecord> kinds;

  friend bool operator==(const LearntPasses&, const LearntPasses&) = default;
};

// Throws InvalidInput unless every record could be one of a pass on an arena of this alignment, bytes, and the rule's
// starts are sorted: for what comes from a file.
void CheckLearntPasses(const LearntPasses& learnt, Bytes alignment);

}  // namespace livepool
