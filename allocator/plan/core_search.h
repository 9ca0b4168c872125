// The depth-first search for problems that are too large for it.
//
// Away from the peak there is room to spare: what constrains the height are the buffers that live when nearly as many
// bytes live as the bound says. So these are searched alone, as a problem of their own, and the others are put around
// them afterwards by the quick rules, to which the core's buffers are fixed.
//
//     bytes ^        core                The core is all that lives in a section with
//     best -|- - - +------+- - - -           live >= 2 x bound - best height,
//     bound |      |######|              as far below the bound as the best plan is above it; and if that is more than
//           |   +--+######+--+           the search takes, those of the highest peaks.
//           +---+-----------+--> time
//
// Each better packing of the core is tried in turn; the first rule by which all buffers end below the best plan so far
// counts. The answer depends on the arguments alone (but for the stop function). Memory is linear in the number of
// buffers.
#pragma once

#include <cstddef>
#include <vector>

#include "livepool/plan/planner.h"
#include "livepool/plan/problem.h"
#include "range_tree.h"
#include "search_schedule.h"
#include "sections.h"

namespace livepool {

// The buffers of the core, ascending: at most `most`, none if too many are equally high.
[[nodiscard]] std::vector<std::size_t> CoreBuffers(const Sections& sections, Bytes best_height, std::size_t most);

// As SearchBelow(), for problems of any size. Does nothing if a buffer has a fixed offset. `options` says which rules
// may put the others around the core; `tree` is that of `sections`.
[[nodiscard]] SearchResult SearchCore(const Problem& problem, const Sections& sections, const RangeTree& tree,
                                      const SearchTask& task, const PlannerOptions& options);

}  // namespace livepool
