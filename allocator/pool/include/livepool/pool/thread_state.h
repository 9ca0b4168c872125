// What the current thread is doing: serving from a plan, recording, or neither.
#pragma once

#include "livepool/pool/trace_sink.h"

namespace livepool {

class Pass;

struct ThreadState {
  Pass* pass = nullptr;       // allocations are served from it
  TraceSink* sink = nullptr;  // allocations and frees are reported to it
};

// The state of the calling thread.
ThreadState& CurrentThread();

// An address that is unique to the calling thread while it lives.
const void* CurrentThreadToken();

// Sets the calling thread's sink for a scope; the previous one is restored, also on exceptions.
class RecordingScope {
 public:
  explicit RecordingScope(TraceSink& sink) : previous_(CurrentThread().sink) { CurrentThread().sink = &sink; }
  ~RecordingScope() { CurrentThread().sink = previous_; }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  TraceSink* previous_;
};

}  // namespace livepool
