// Statistics and reports as dicts; the keys are documented where Python hands them out.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include "livepool/livepool.h"

namespace livepool {

py::dict ToDict(const GraphReport& report);
py::dict ToDict(const ScopeStats& stats);
// Of all devices together.
py::dict StatsDict();
// By the names of the scopes.
py::dict ScopeStatsDict();

}  // namespace livepool
