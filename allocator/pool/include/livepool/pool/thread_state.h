// What the current thread is doing: serving from a plan, recording, or neither.
#pragma once

#include <cstdint>

#include "livepool/pool/server.h"
#include "livepool/pool/trace_sink.h"

namespace livepool {

struct ThreadState {
  Server* pass = nullptr;     // allocations are served from it
  TraceSink* sink = nullptr;  // allocations and frees are reported to it
  bool recording = false;     // a graph: nothing may be served, even while the sink is taken away
};

namespace detail {
// initial-exec: one load instead of a call per access. The loader keeps room for the 32 bytes that a library opened at
// run time needs (free_watch.h has the other 8).
extern constinit thread_local ThreadState current_thread __attribute__((tls_model("initial-exec")));
}  // namespace detail

// The state of the calling thread.
inline ThreadState& CurrentThread() { return detail::current_thread; }

// An address that is unique to the calling thread while it lives.
inline const void* CurrentThreadToken() { return &detail::current_thread; }

// Of the calling thread. Unlike CurrentThreadToken and the system's ids it never comes again when the thread has ended.
std::uint64_t ThreadNumber();

// Sets the calling thread's sink for a scope, in which nothing is served, unless who records sets a server of his own,
// which reports its slots. What was before is restored, also on exceptions.
class RecordingScope {
 public:
  explicit RecordingScope(TraceSink& sink) : previous_(CurrentThread()) {
    CurrentThread() = {.pass = nullptr, .sink = &sink, .recording = true};
  }
  ~RecordingScope() { CurrentThread() = previous_; }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

 private:
  ThreadState previous_;
};

}  // namespace livepool
