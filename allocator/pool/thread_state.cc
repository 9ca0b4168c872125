#include "livepool/pool/thread_state.h"

#include "livepool/pool/free_watch.h"

namespace livepool {

constinit thread_local ThreadState detail::current_thread;
constinit thread_local FreeWatch* detail::free_watch = nullptr;

}  // namespace livepool
