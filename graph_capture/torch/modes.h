// The thread-local state that is part of a computation: grad, inference and autocast mode.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

namespace livepool {

struct ThreadModes {
  struct Autocast {
    bool enabled = false;
    at::ScalarType dtype = at::kFloat;
    // The dtype of an autocast that is off means nothing.
    friend bool operator==(const Autocast& a, const Autocast& b) {
      return a.enabled == b.enabled && (!a.enabled || a.dtype == b.dtype);
    }
  };

  bool grad = false;
  bool inference = false;
  std::array<Autocast, 2> autocast;  // of the CPU and of CUDA

  // The calling thread's.
  static ThreadModes Current();
  friend bool operator==(const ThreadModes&, const ThreadModes&) = default;
};

// Installs `modes` on the calling thread for a scope. Autocast's cache of converted weights is off in it, as
// it would keep tensors of the pass beyond the pass.
class ModesScope {
 public:
  explicit ModesScope(const ThreadModes& modes);
  ~ModesScope();
  ModesScope(const ModesScope&) = delete;
  ModesScope& operator=(const ModesScope&) = delete;

 private:
  static void Apply(const std::array<ThreadModes::Autocast, 2>& autocast);

  c10::InferenceMode inference_;
  c10::AutoGradMode grad_;
  std::array<ThreadModes::Autocast, 2> autocast_before_;
  bool cache_before_;
};

// Note [Modes of an op]
// Autocast is off inside autocast's own kernels, which call the ops that the recorder sees, and a program may
// switch autocast or inference mode itself. So each op is run in the modes in which it was recorded. Inference
// mode is the caller's where the pass did not change it: outputs are of the kind that eager would return.
class ModesSwitch {
 public:
  // `modes`: what ops can ask for; [0] is the mode that the pass began in. `below_autograd`: skip autograd's and
  // view-tracking's kernels.
  ModesSwitch(const std::vector<ThreadModes>& modes, bool below_autograd);
  void To(std::size_t index);
  // `modes`[index], with inference mode as on the calling thread.
  static ThreadModes ForCaller(const std::vector<ThreadModes>& modes, std::size_t index, bool inference);

 private:
  const std::vector<ThreadModes>& modes_;
  const bool below_autograd_;
  const bool caller_inference_ = c10::InferenceMode::is_enabled();
  std::optional<std::size_t> current_;
  std::optional<ModesScope> scope_;
  std::optional<at::AutoDispatchBelowADInplaceOrView> below_;  // inside scope_, which resets the keys
};

}  // namespace livepool
