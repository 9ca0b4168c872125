#include "settings.h"

#include <ATen/Context.h>
#include <c10/core/DefaultDtype.h>

namespace livepool {
namespace {

struct Setting {
  const char* name;
  std::int64_t (*get)(const at::Context&);
};

template <typename T>
std::int64_t Int(T value) {
  return static_cast<std::int64_t>(value);
}

using at::Context;
using at::Float32Backend;
using at::Float32Op;

constexpr std::array kSettings{
    Setting{"the default dtype", [](const Context&) { return Int(c10::get_default_dtype_as_scalartype()); }},
    Setting{"use_deterministic_algorithms", [](const Context& c) { return Int(c.deterministicAlgorithms()); }},
    Setting{"deterministic.fill_uninitialized_memory",
            [](const Context& c) { return Int(c.deterministicFillUninitializedMemory()); }},
    Setting{"backends.cudnn.enabled", [](const Context& c) { return Int(c.userEnabledCuDNN()); }},
    Setting{"backends.cudnn.benchmark", [](const Context& c) { return Int(c.benchmarkCuDNN()); }},
    Setting{"backends.cudnn.deterministic", [](const Context& c) { return Int(c.deterministicCuDNN()); }},
    Setting{"backends.mkldnn.enabled", [](const Context& c) { return Int(c.userEnabledMkldnn()); }},
    Setting{"backends.mkldnn.deterministic", [](const Context& c) { return Int(c.deterministicMkldnn()); }},
    Setting{"flash attention", [](const Context& c) { return Int(c.userEnabledFlashSDP()); }},
    Setting{"memory-efficient attention", [](const Context& c) { return Int(c.userEnabledMemEfficientSDP()); }},
    Setting{"math attention", [](const Context& c) { return Int(c.userEnabledMathSDP()); }},
    Setting{"cuDNN attention", [](const Context& c) { return Int(c.userEnabledCuDNNSDP()); }},
    Setting{"the float32 precision of matmul on CUDA",
            [](const Context& c) { return Int(c.float32Precision(Float32Backend::CUDA, Float32Op::MATMUL)); }},
    Setting{"the float32 precision of convolutions on CUDA",
            [](const Context& c) { return Int(c.float32Precision(Float32Backend::CUDA, Float32Op::CONV)); }},
    Setting{"the float32 precision of RNNs on CUDA",
            [](const Context& c) { return Int(c.float32Precision(Float32Backend::CUDA, Float32Op::RNN)); }},
    Setting{"the float32 precision of matmul on the CPU",
            [](const Context& c) { return Int(c.float32Precision(Float32Backend::MKLDNN, Float32Op::MATMUL)); }},
    Setting{"reduced-precision reductions of float16 matmul",
            [](const Context& c) { return Int(c.allowFP16ReductionCuBLAS()); }},
    Setting{"reduced-precision reductions of bfloat16 matmul",
            [](const Context& c) { return Int(c.allowBF16ReductionCuBLAS()); }},
};

}  // namespace

GlobalSettings GlobalSettings::Current() {
  static_assert(kSettings.size() == kCount);
  GlobalSettings settings;
  for (std::size_t i = 0; i < kCount; ++i) settings.values_[i] = kSettings[i].get(at::globalContext());
  return settings;
}

std::optional<std::string> GlobalSettings::Differs(const GlobalSettings& other) const {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (values_[i] != other.values_[i]) return kSettings[i].name;
  }
  return std::nullopt;
}

}  // namespace livepool
