// What livepool-plan prints.
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>

#include "livepool/plan/plan.h"

namespace livepool::plan_tool {

// One line for people, or a JSON object. `name` is the trace's file.
void PrintReport(std::ostream& out, const std::string& name, const Plan& plan, double seconds, bool json);

// A line on stderr that is written over, if a terminal is there and the work takes more than a second.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(const Plan& plan);
  double seconds() const;

 private:
  using Clock = std::chrono::steady_clock;
  const bool terminal_;
  const Clock::time_point start_;
  double next_ = 1;
  bool shown_ = false;
};

}  // namespace livepool::plan_tool
