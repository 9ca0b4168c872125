// Where plans are made beside the program.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace livepool {

// One thread, started by the first job. Jobs run one after the other, in the order in which they came.
class PlanningThread {
 public:
  // At most `capacity` jobs wait.
  explicit PlanningThread(std::size_t capacity = 64) : capacity_(capacity) {}
  // Stops, without the jobs that have not begun.
  ~PlanningThread() { Stop(); }
  PlanningThread(const PlanningThread&) = delete;
  PlanningThread& operator=(const PlanningThread&) = delete;

  // Has `job` run later; false if too many wait, or after Stop. A job throws nothing.
  bool Submit(std::function<void()> job);
  // Returns when every job so far has run, or after Stop. Not to be called by a job.
  void Wait();
  // Ends the thread; returns when the running job, if any, has returned. Long jobs ask stopping().
  void Stop();
  bool stopping() const;

  // The one of this process. It is never destroyed, and stops when the process exits. In a forked child it has stopped:
  // the thread is the parent's, and what it had locked stays locked.
  static PlanningThread& OfProcess();

 private:
  void Loop();
  void BeforeFork() { mutex_.lock(); }
  void AfterForkInParent() { mutex_.unlock(); }
  void AfterForkInChild();

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;  // the first one is running
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace livepool
