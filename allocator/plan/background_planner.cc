#include "livepool/plan/background_planner.h"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <stop_token>
#include <thread>
#include <utility>

#include "livepool/plan/validate.h"

namespace livepool {
namespace {

// One search at a time. Immortal, as a thread may be in here while the process ends.
class Turn {
 public:
  static Turn& Get() {
    static Turn& turn = *new Turn;
    return turn;
  }

  // False if `stop` came first.
  bool Wait(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [&] { return !taken_; })) return false;
    taken_ = true;
    return true;
  }

  void End() {
    {
      const std::lock_guard lock(mutex_);
      taken_ = false;
    }
    changed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool taken_ = false;
};

}  // namespace

struct BackgroundPlanner::Search {
  const Problem problem;
  const Bytes height;
  const PlannerOptions options;
  std::stop_source stop;
  std::atomic<bool> done{false};
  // Written before `done` is stored, read after it was loaded.
  std::optional<Plan> better;
  std::exception_ptr error;

  Search(Problem p, Bytes h, PlannerOptions o) : problem(std::move(p)), height(h), options(o) {}

  void Run() noexcept {
    // Linux counts niceness by thread. If it is refused, the search only runs at the usual priority.
    (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
    if (Turn::Get().Wait(stop.get_token())) {
      LookForPlan();
      Turn::Get().End();
    }
    done.store(true, std::memory_order_release);
  }

  void LookForPlan() noexcept try {
    Plan plan = MakePlan(problem, options, [&](const Plan&) { return !stop.stop_requested(); });
    if (plan.height >= height || stop.stop_requested()) return;
    CheckPlan(problem, plan);
    better = std::move(plan);
  } catch (const std::bad_alloc&) {
    // No memory to search with: the plan at hand stays.
  } catch (...) {
    error = std::current_exception();
  }
};

BackgroundPlanner::BackgroundPlanner(Problem problem, Bytes height, PlannerOptions options)
    : search_(std::make_shared<Search>(std::move(problem), height, options)) {
  std::thread([search = search_] { search->Run(); }).detach();
}

BackgroundPlanner::~BackgroundPlanner() { search_->stop.request_stop(); }

bool BackgroundPlanner::Done() const { return search_->done.load(std::memory_order_acquire); }

std::optional<Plan> BackgroundPlanner::Take() {
  if (search_->error) std::rethrow_exception(std::exchange(search_->error, nullptr));
  return std::exchange(search_->better, std::nullopt);
}

}  // namespace livepool
