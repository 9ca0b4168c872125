#include "livepool/torch/pass_scope.h"

#include <exception>
#include <iostream>
#include <thread>

#include "livepool/base/error.h"
#include "livepool/eager/eager_pass.h"
#include "livepool/eager/planning_thread.h"
#include "livepool/eager/scopes.h"
#include "livepool/pool/forked.h"
#include "livepool/pool/thread_state.h"
#include "livepool/torch/eager_code.h"
#include "livepool/torch/install.h"

namespace livepool {
namespace {

constexpr DeviceId kHost{DeviceId::Kind::kHost, 0};

// Immortal: a pass may end while the process exits.
Scopes& AllScopes() {
  static auto* const scopes = new Scopes(
      PoolOf(kHost).backend().Alignment(),
      [](std::function<void()> job) { return PlanningThread::OfProcess().Submit(std::move(job)); },
      [] { return PlanningThread::OfProcess().stopping(); });
  return *scopes;
}

}  // namespace

// Running scopes of a thread form a list. It is a stack but for Python's generators, which may end a scope that others
// have been entered in meanwhile.
struct PassScope::Running {
  Running(std::shared_ptr<ScopePlans> scope, const void* entry)
      : pass(std::move(scope), PoolOf(kHost), nullptr, entry, GetEnv().fill),
        outer(innermost),
        before(CurrentThread()),
        thread(std::this_thread::get_id()) {
    innermost = this;
    CurrentThread() = {.pass = &pass, .sink = &pass};
  }

  // The thread is no longer served from this pass.
  void Leave() {
    if (innermost == this) {
      innermost = outer;
      CurrentThread() = before;
      return;
    }
    for (Running* inner = innermost; inner != nullptr; inner = inner->outer) {
      if (inner->outer != this) continue;
      inner->outer = outer;
      inner->before = before;
    }
  }

  static bool Runs(const ScopePlans* scope) {
    for (const Running* each = innermost; each != nullptr; each = each->outer) {
      if (&each->pass.scope() == scope) return true;
    }
    return false;
  }

  // True if the thread records or replays a graph. Outside of all scopes its found passes may serve it.
  static bool ThreadIsTaken() {
    const auto is_not = [](const auto* ours) {
      return CurrentThread().recording || CurrentThread().pass != ours || CurrentThread().sink != ours;
    };
    return innermost == nullptr ? is_not(detail::FoundPassesOfThread()) : is_not(&innermost->pass);
  }

  static thread_local Running* innermost;

  EagerPass pass;
  Running* outer;
  ThreadState before;
  const std::thread::id thread;
};

thread_local PassScope::Running* PassScope::Running::innermost = nullptr;

PassScope::PassScope(const std::string& name) : exceptions_(std::uncaught_exceptions()) {
  (void)PoolOf(kHost);
  if (!GetEnv().enabled || Running::ThreadIsTaken() || InForkedChild()) return;
  std::shared_ptr<ScopePlans> scope = AllScopes().Of(name);
  if (Running::Runs(scope.get())) return;
  running_ = std::make_unique<Running>(std::move(scope), __builtin_frame_address(0));
}

void PassScope::End(bool failed) {
  if (running_ == nullptr) return;
  if (running_->thread != std::this_thread::get_id()) {
    throw Error("livepool: scope '" + running_->pass.scope().name() +
                "' was entered by another thread; leave it on the thread that entered it");
  }
  const bool forked = InForkedChild();  // then the thread is served from no pass any more
  if (!forked && Running::innermost == running_.get() && Running::ThreadIsTaken()) {
    throw Error("livepool: scope '" + running_->pass.scope().name() +
                "' cannot be left inside a capture or a replay that began in it");
  }
  if (failed) running_->pass.Abandon();
  running_->Leave();
  if (forked) {
    CurrentThread() = {};
    (void)running_.release();  // what is learnt may be locked for ever
  } else {
    running_.reset();
  }
}

PassScope::~PassScope() {
  try {
    End(std::uncaught_exceptions() > exceptions_);
  } catch (const Error& error) {
    // Its thread still serves from the pass, which therefore stays.
    std::cerr << error.what() << '\n';
    (void)running_.release();
  }
}

ScopeStats StatsOfScope(const std::string& name) {
  for (const auto& [each, stats] : StatsOfScopes()) {
    if (each == name) return stats;
  }
  return {};
}

std::vector<std::pair<std::string, ScopeStats>> StatsOfScopes() {
  if (!Installed(DeviceId::Kind::kHost) || InForkedChild()) return {};
  return AllScopes().Stats();
}

void WaitForPlans() { PlanningThread::OfProcess().Wait(); }

}  // namespace livepool
