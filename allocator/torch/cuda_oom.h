// Who hears of an out-of-memory, and when.
#pragma once

#include <functional>
#include <vector>

#include "c10_compat.h"

namespace livepool {

// Note [One report for one out-of-memory]
// Upstream calls its observers whenever a request fails, also when idle arenas can then be given back and the second
// try goes well. So observers are wrapped: what upstream tells them is kept for the thread, until it is known whether
// the user sees the error (Report) or not (Forget). Observers that were attached before livepool are not known here.
class OomReports {
 public:
  // To be attached to upstream in the place of `observer`.
  static c10_compat::OutOfMemoryObserver Deferred(c10_compat::OutOfMemoryObserver observer) {
    return [observer = std::move(observer)](auto... facts) { Pending().push_back([=] { observer(facts...); }); };
  }
  // On the thread whose request failed, with no lock held.
  static void Report() {
    std::vector<std::function<void()>> reports;
    reports.swap(Pending());
    for (const auto& report : reports) report();
  }
  static void Forget() { Pending().clear(); }

 private:
  static std::vector<std::function<void()>>& Pending() {
    static thread_local std::vector<std::function<void()>> pending;
    return pending;
  }
};

}  // namespace livepool
