#include "livepool/pool/forked.h"

#include <pthread.h>

#include <atomic>

#include "livepool/pool/thread_state.h"

namespace livepool {
namespace {

std::atomic<bool> forked{false};

void InChild() {
  forked.store(true, std::memory_order_relaxed);
  CurrentThread().pass = nullptr;
}

}  // namespace

bool InForkedChild() { return forked.load(std::memory_order_relaxed); }

void NoticeForks() {
  static const int registered = pthread_atfork(nullptr, nullptr, &InChild);
  (void)registered;
}

}  // namespace livepool
