// Who hears of each free of a thread, whatever was freed.
#pragma once

namespace livepool {

// A TraceSink hears of upstream's memory alone, and while it records or serves; a FreeWatch of slots, too, at any time.
class FreeWatch {
 public:
  virtual ~FreeWatch() = default;
  // Before `address` is freed. `frame`: an address inside the stack frame of the deleter, as in Server::Serve.
  virtual void OnAnyFree(const void* address, const void* frame) noexcept = 0;
};

namespace detail {
extern constinit thread_local FreeWatch* free_watch __attribute__((tls_model("initial-exec")));
}  // namespace detail

// Of the calling thread; null: nobody.
inline FreeWatch*& CurrentFreeWatch() { return detail::free_watch; }

}  // namespace livepool
