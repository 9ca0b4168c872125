// A scope for calls that the recorder itself makes.
#pragma once

#include <ATen/record_function.h>

#include <utility>

#include "livepool/pool/thread_state.h"

namespace livepool {

// Calls that the recorder itself makes are neither recorded nor counted as the pass's.
class Unobserved {
 public:
  Unobserved() : sink_(std::exchange(CurrentThread().sink, nullptr)) {}
  ~Unobserved() { CurrentThread().sink = sink_; }

 private:
  at::DisableRecordFunctionGuard no_hook_;
  TraceSink* sink_;
};

}  // namespace livepool
