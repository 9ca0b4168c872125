#include "livepool/pool/thread_state.h"

#include <atomic>

#include "livepool/pool/free_watch.h"

namespace livepool {

constinit thread_local ThreadState detail::current_thread;
constinit thread_local FreeWatch* detail::free_watch = nullptr;

std::uint64_t ThreadNumber() {
  static std::atomic<std::uint64_t> next{1};
  thread_local const std::uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace livepool
