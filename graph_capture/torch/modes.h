// The thread-local state that is part of a computation: grad, inference and autocast mode.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

#include <array>
#include <string>

namespace livepool {

struct ThreadModes {
  struct Autocast {
    bool enabled = false;
    at::ScalarType dtype = at::kFloat;
    friend bool operator==(const Autocast&, const Autocast&) = default;
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

}  // namespace livepool
