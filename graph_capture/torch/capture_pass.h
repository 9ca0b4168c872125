// A pass seen twice: run by the callable under the recorder, and replayed once to see its allocations.
#pragma once

#include "calibration.h"
#include "livepool/capture/exec_graph.h"
#include "program.h"

namespace livepool {

struct CapturedPass {
  Program program;
  Calibration calibration;
  // What a file may keep of it, but for problem and plan.
  SavedPlan saved;
  std::string not_as_saved;         // in what it differs from options.plan; empty if in nothing
  Bytes sum_bytes = 0;              // of the callable's own run
  Bytes eager_live_peak_bytes = 0;  // likewise
};

// Runs `fn` on `inputs`, tensors of `device`, once; its effects on them, on the state and on generators happen once.
// Both runs are served from arenas of `pool`, as far as options.plan knows them. Throws CaptureRefused, and what fn
// throws.
CapturedPass CapturePass(const Callable& fn, const Tensors& inputs, const CaptureOptions& options, ArenaPool& pool);

}  // namespace livepool
