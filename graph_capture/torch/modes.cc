#include "modes.h"

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

namespace livepool {
namespace {

constexpr std::array kDevices{at::kCPU, at::kCUDA};

}  // namespace

ThreadModes ThreadModes::Current() {
  ThreadModes modes{.grad = c10::GradMode::is_enabled(), .inference = c10::InferenceMode::is_enabled()};
  for (std::size_t i = 0; i < kDevices.size(); ++i) {
    modes.autocast[i] = {.enabled = at::autocast::is_autocast_enabled(kDevices[i]),
                         .dtype = at::autocast::get_autocast_dtype(kDevices[i])};
  }
  return modes;
}

ModesScope::ModesScope(const ThreadModes& modes)
    : inference_(modes.inference),
      grad_(modes.grad),
      autocast_before_(ThreadModes::Current().autocast),
      cache_before_(at::autocast::is_autocast_cache_enabled()) {
  Apply(modes.autocast);
  at::autocast::set_autocast_cache_enabled(false);
}

ModesScope::~ModesScope() {
  Apply(autocast_before_);
  at::autocast::set_autocast_cache_enabled(cache_before_);
}

void ModesScope::Apply(const std::array<ThreadModes::Autocast, 2>& autocast) {
  for (std::size_t i = 0; i < kDevices.size(); ++i) {
    at::autocast::set_autocast_enabled(kDevices[i], autocast[i].enabled);
    at::autocast::set_autocast_dtype(kDevices[i], autocast[i].dtype);
  }
}

}  // namespace livepool
