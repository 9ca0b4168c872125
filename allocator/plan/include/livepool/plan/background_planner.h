// A better plan, looked for while the one at hand is in use.
#pragma once

#include <memory>
#include <optional>

#include "livepool/plan/plan.h"
#include "livepool/plan/planner.h"
#include "livepool/plan/problem.h"

namespace livepool {

// One thread, of the lowest priority, from construction until its search ends or the object goes. Of all objects in the
// process one searches at a time; the others wait. What a search finds depends on `problem` and `options` alone, if it
// is left to end, so give it a node budget and no time limit.
//
// Nobody waits for the thread, neither the destructor, nor the end of the process, nor the child of a fork, which has
// no such thread: the search owns all that it uses. Once it is not wanted it stops within a few hundred nodes or one
// rule.
class BackgroundPlanner {
 public:
  // Looks for a plan that is lower than `height`. Throws std::system_error if no thread can be had.
  BackgroundPlanner(Problem problem, Bytes height, PlannerOptions options);
  // Stops the search.
  ~BackgroundPlanner();
  BackgroundPlanner(const BackgroundPlanner&) = delete;
  BackgroundPlanner& operator=(const BackgroundPlanner&) = delete;

  // The search has ended. Any thread; one atomic load.
  bool Done() const;

  // Once Done: the better plan, judged (validate.h), or nothing if there is none. The first call gets it. Throws
  // InvalidPlan if the planner has made a plan that breaks a rule. One thread.
  [[nodiscard]] std::optional<Plan> Take();

 private:
  struct Search;
  std::shared_ptr<Search> search_;
};

}  // namespace livepool
