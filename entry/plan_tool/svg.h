// A plan as a picture: time to the right, offset upwards.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "livepool/plan/plan.h"
#include "livepool/plan/problem.h"

namespace livepool::plan_tool {

// Each buffer is a rectangle, coloured by its size; the line above them is what is alive, and the dashed one the lower
// bound. `ids` are what the rectangles' tooltips say. Buffers too small to see are left out of very large pictures.
void WriteSvg(std::ostream& out, const std::string& title, const Problem& problem, const Plan& plan,
              const std::vector<std::string>& ids);

}  // namespace livepool::plan_tool
