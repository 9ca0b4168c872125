#include "report.h"

#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

namespace livepool::plan_tool {
namespace {

double Ratio(const Plan& plan) {
  return plan.lower_bound > 0 ? static_cast<double>(plan.height) / static_cast<double>(plan.lower_bound) : 1.0;
}

std::string Rounded(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, number);
  return text;
}

}  // namespace

void PrintReport(std::ostream& out, const std::string& name, const Plan& plan, double seconds, bool json) {
  if (json) {
    const nlohmann::ordered_json report = {
        {"buffers", plan.offsets.size()},
        {"lower_bound", plan.lower_bound},
        {"arena", plan.height},
        {"ratio", Ratio(plan)},
        {"seconds", seconds},
        {"proved_optimal", plan.ProvedOptimal()},
        {"algorithm", plan.algorithm},
    };
    out << report.dump() << '\n';
    return;
  }
  out << name << ": " << plan.offsets.size() << " buffers in " << plan.height << " bytes (" << FormatBytes(plan.height)
      << "), " << Rounded(Ratio(plan), 4) << " x the lower bound" << (plan.ProvedOptimal() ? ", proved optimal" : "")
      << ", " << Rounded(seconds * 1e3, 1) << " ms, " << plan.algorithm << '\n';
}

ProgressLine::ProgressLine() : terminal_(isatty(STDERR_FILENO) != 0), start_(Clock::now()) {}

ProgressLine::~ProgressLine() {
  if (shown_) std::cerr << "\r\033[K" << std::flush;
}

double ProgressLine::seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

void ProgressLine::Show(const Plan& plan) {
  if (!terminal_ || seconds() < next_) return;
  std::cerr << "\r\033[K" << Rounded(seconds(), 0) << " s: " << plan.height << " bytes, " << Rounded(Ratio(plan), 4)
            << " x the lower bound, " << plan.algorithm << std::flush;
  next_ = seconds() + 0.2;
  shown_ = true;
}

}  // namespace livepool::plan_tool
