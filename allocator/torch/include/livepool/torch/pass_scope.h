// Marks a piece of plain eager code as a pass: it runs as it is, and its CPU tensors are served from a plan.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "livepool/eager/scope_plans.h"

namespace livepool {

// From construction to destruction the calling thread's allocations belong to one pass of the scope `name`. The first
// pass is recorded, its plan is made in the background, later passes are served (docs/eager.md). A program that
// does otherwise than before gets fewer allocations from the plan, and the same results.
//
//     for (const at::Tensor& input : inputs) {
//       livepool::PassScope scope("detector");
//       Use(model.forward(input));
//     }
//
// - Scopes nest: the inner one serves what is allocated inside it, from an arena of its own.
// - A scope that is entered again inside itself (recursion) does nothing: the outermost run is the pass.
// - Inside a capture or a replay a scope does nothing, nor does it in a forked child of a process that had scopes.
// - Other threads are not served; what they free of the pass's is free.
// - If the scope ends by an exception, nothing is learnt from that pass.
class PassScope {
 public:
  // Throws NotInstalled if livepool is not installed for the CPU.
  explicit PassScope(const std::string& name);
  // To be called by the thread that made it, in any order with other scopes.
  ~PassScope();
  PassScope(const PassScope&) = delete;
  PassScope& operator=(const PassScope&) = delete;

  // Ends the pass early; later calls, and the destructor, do nothing. `failed`: by an exception.
  // Throws Error on another thread than the constructor's, and inside a capture or replay that began in the scope; the
  // pass goes on then.
  void End(bool failed);

 private:
  struct Running;
  std::unique_ptr<Running> running_;  // null: this scope does nothing
  const int exceptions_;              // in flight when it began
};

// What the scope `name` has done; zeroes if there was none of that name.
ScopeStats StatsOfScope(const std::string& name);
// By name.
std::vector<std::pair<std::string, ScopeStats>> StatsOfScopes();
// Returns when the plans of all passes so far are made: for tests and measurements.
void WaitForPlans();

}  // namespace livepool
