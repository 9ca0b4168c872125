#include "livepool/eager/planning_thread.h"

#include <pthread.h>

#include <cstdlib>
#include <utility>

namespace livepool {

bool PlanningThread::Submit(std::function<void()> job) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || jobs_.size() >= capacity_) return false;
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  jobs_.push_back(std::move(job));
  changed_.notify_all();
  return true;
}

void PlanningThread::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return jobs_.empty() || stopping_; });
}

void PlanningThread::Stop() {
  std::thread thread;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
    thread.swap(thread_);
  }
  if (thread.joinable()) thread.join();
}

bool PlanningThread::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void PlanningThread::AfterForkInChild() {
  stopping_ = true;
  new std::thread(std::move(thread_));  // nobody is there to be joined
  mutex_.unlock();
}

void PlanningThread::Loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
    if (stopping_) return;
    std::function<void()> job = jobs_.front();
    lock.unlock();
    job();
    job = nullptr;  // what it holds goes before anybody hears that it is done
    lock.lock();
    jobs_.front() = nullptr;
    jobs_.pop_front();
    changed_.notify_all();
  }
}

PlanningThread& PlanningThread::OfProcess() {
  static PlanningThread* const thread = [] {
    auto* made = new PlanningThread;
    std::atexit([] { OfProcess().Stop(); });
    pthread_atfork([] { OfProcess().BeforeFork(); }, [] { OfProcess().AfterForkInParent(); },
                   [] { OfProcess().AfterForkInChild(); });
    return made;
  }();
  return *thread;
}

}  // namespace livepool
