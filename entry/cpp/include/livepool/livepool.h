// livepool for LibTorch applications.
//
//   livepool::Install();                                  // once, before other threads run
//   c10::InferenceMode mode;
//   auto graph = livepool::Capture(
//       [&](const livepool::Tensors& in) { return livepool::Tensors{model.forward({in[0]}).toTensor()}; },
//       {input}, {.state = livepool::StateOf(model)});
//   at::Tensor output = graph->Replay({other_input})[0];
//
// or, without choosing what to capture, livepool::Wrap(model): see livepool/wrap.h;
// or the program as it is, served from a plan, as long as a `livepool::PassScope scope("step");` lives; or
// livepool::ServeEagerCode(), which finds the passes itself.
#pragma once

#include "livepool/base/error.h"
#include "livepool/capture/exec_graph.h"
#include "livepool/torch/eager_code.h"
#include "livepool/torch/install.h"
#include "livepool/torch/pass_scope.h"
#include "livepool/torch/report.h"
#include "livepool/wrap.h"

namespace livepool {

// Installs the CPU allocator and, in a build with CUDA, the CUDA allocator.
inline void Install() {
  Install(DeviceId::Kind::kHost);
#ifdef LIVEPOOL_HAVE_CUDA
  Install(DeviceId::Kind::kCuda);
#endif
}

}  // namespace livepool
