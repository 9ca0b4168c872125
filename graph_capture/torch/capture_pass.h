// A pass seen twice: run by the callable under the recorder, and replayed once to see its allocations.
#pragma once

#include "calibration.h"
#include "livepool/capture/exec_graph.h"
#include "program.h"

namespace livepool {

struct CapturedPass {
  Program program;
  Calibration calibration;
  Bytes sum_bytes = 0;              // of the callable's own run
  Bytes eager_live_peak_bytes = 0;  // likewise
};

// Runs `fn` on `inputs`, tensors of `device`, once; its effects on them, on the state and on generators happen once.
// `alignment`: what the device's allocations are rounded to. Throws CaptureRefused, and what fn throws.
CapturedPass CapturePass(const Callable& fn, const Tensors& inputs, const CaptureOptions& options, DeviceId device,
                         Bytes alignment);

}  // namespace livepool
