#include "livepool/torch/eager_code.h"

#include <exception>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "livepool/base/env.h"
#include "livepool/eager/planning_thread.h"
#include "livepool/pool/forked.h"
#include "livepool/pool/thread_state.h"
#include "livepool/torch/install.h"

namespace livepool {
namespace {

constexpr DeviceId kHost{DeviceId::Kind::kHost, 0};

// What all threads did. Immortal, as threads may end while the process exits.
struct Threads {
  std::mutex mutex;
  std::int64_t joined = 0;
  std::vector<std::shared_ptr<const FoundCounts>> running;
  FoundStats ended;

  static Threads& All() {
    static auto* const all = new Threads;
    return *all;
  }
};

// The calling thread's part in it.
class Joined {
 public:
  void Join(const void* frame) {
    was_here_ = true;
    auto passes = std::make_unique<FoundPasses>(
        "found", PoolOf(kHost), nullptr, frame, GetEnv().fill,
        [](std::function<void()> job) { return PlanningThread::OfProcess().Submit(std::move(job)); },
        [] { return PlanningThread::OfProcess().stopping(); });
    Threads& all = Threads::All();
    {
      const std::lock_guard lock(all.mutex);
      all.running.push_back(passes->counts());
      ++all.joined;
    }
    passes_ = std::move(passes);
    CurrentThread() = {.pass = passes_.get(), .sink = passes_.get()};
    CurrentFreeWatch() = passes_.get();
  }

  ~Joined() {
    was_here_ = true;
    if (passes_ == nullptr) return;
    CurrentFreeWatch() = nullptr;
    // In a forked child what is learnt may be locked for ever. And a scope that its thread has not left goes on
    // after us, and gives the thread back to us.
    if (InForkedChild() || CurrentThread().sink != passes_.get()) {
      (void)passes_.release();
      return;
    }
    CurrentThread() = {};
    passes_->End();
    Threads& all = Threads::All();
    const std::lock_guard lock(all.mutex);
    const FoundStats stats = passes_->counts()->Read();
    all.ended.allocations += stats.allocations;
    all.ended.passes.Add(stats.passes);
    std::erase(all.running, passes_->counts());
    passes_ = nullptr;
  }

  bool was_here() const { return was_here_; }
  FoundPasses* passes() const { return passes_.get(); }

 private:
  bool was_here_ = false;  // also when the thread has ended
  std::unique_ptr<FoundPasses> passes_;
};

thread_local Joined joined;

}  // namespace

void ServeEagerCode() {
  (void)PoolOf(kHost);
  if (GetEnv().enabled) detail::serves_eager_code.store(true, std::memory_order_relaxed);
}

FoundPasses* detail::FoundPassesOfThread() { return ServesEagerCode() ? joined.passes() : nullptr; }

void detail::JoinEagerCode(const void* frame) noexcept {
  const ThreadState& thread = CurrentThread();
  if (thread.sink != nullptr || thread.recording || joined.was_here() || InForkedChild()) return;
  try {
    joined.Join(frame);
  } catch (const std::exception&) {
    // The thread goes on with upstream's memory.
  }
}

EagerCodeStats StatsOfEagerCode() {
  EagerCodeStats stats;
  if (InForkedChild()) {
    stats.why_not = "a forked child runs on PyTorch's memory";
    return stats;
  }
  if (!GetEnv().enabled) {
    stats.why_not = "LIVEPOOL=0";
  } else if (!Installed(DeviceId::Kind::kHost)) {
    stats.why_not = "livepool is not installed for the CPU, or another allocator was installed after it";
  } else if (!detail::ServesEagerCode()) {
    stats.why_not = "not asked for: LIVEPOOL=1, livepool run, or livepool.serve_eager_code()";
  }
  Threads& all = Threads::All();
  const std::lock_guard lock(all.mutex);
  stats.threads = all.joined;
  stats.allocations = all.ended.allocations;
  stats.passes = all.ended.passes;
  for (const auto& counts : all.running) {
    const FoundStats each = counts->Read();
    stats.allocations += each.allocations;
    stats.passes.Add(each.passes);
    stats.serving += each.state == PassFinder::State::kServing ? 1 : 0;
    stats.looking += each.state == PassFinder::State::kLooking ? 1 : 0;
    stats.asleep += each.state == PassFinder::State::kAsleep ? 1 : 0;
  }
  return stats;
}

}  // namespace livepool
