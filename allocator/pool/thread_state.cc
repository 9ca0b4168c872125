#include "livepool/pool/thread_state.h"

namespace livepool {

constinit thread_local ThreadState detail::current_thread;

}  // namespace livepool
