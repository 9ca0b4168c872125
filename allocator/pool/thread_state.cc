#include "livepool/pool/thread_state.h"

namespace livepool {
namespace {

// initial-exec: one load instead of a call per access. The loader keeps room for the 16 bytes that a
// library opened at run time needs.
constinit thread_local ThreadState state __attribute__((tls_model("initial-exec")));

}  // namespace

ThreadState& CurrentThread() { return state; }
const void* CurrentThreadToken() { return &state; }

}  // namespace livepool
