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

ThreadModes ModesSwitch::ForCaller(const std::vector<ThreadModes>& modes, std::size_t index, bool inference) {
  ThreadModes wanted = modes[index];
  if (wanted.inference == modes[0].inference) wanted.inference = inference;
  return wanted;
}

ModesSwitch::ModesSwitch(const std::vector<ThreadModes>& modes, bool below_autograd)
    : modes_(modes), below_autograd_(below_autograd) {
  To(0);
}

void ModesSwitch::To(std::size_t index) {
  if (current_ == index) return;
  below_.reset();
  scope_.reset();
  scope_.emplace(ForCaller(modes_, index, caller_inference_));
  if (below_autograd_) below_.emplace();
  current_ = index;
}

void ModesScope::Apply(const std::array<ThreadModes::Autocast, 2>& autocast) {
  for (std::size_t i = 0; i < kDevices.size(); ++i) {
    at::autocast::set_autocast_enabled(kDevices[i], autocast[i].enabled);
    at::autocast::set_autocast_dtype(kDevices[i], autocast[i].dtype);
  }
}

}  // namespace livepool
