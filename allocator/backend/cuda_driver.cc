#include "livepool/backend/cuda_driver.h"

#include <dlfcn.h>

#include <type_traits>

namespace livepool {
namespace {

struct Loaded {
  CudaDriver driver;
  std::string why_not;  // empty: usable
};

std::string LinkerError() {
  const char* const text = dlerror();
  return text != nullptr ? text : "unknown error";
}

Loaded Load() {
  Loaded loaded;
  CudaDriver& driver = loaded.driver;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.why_not =
        "the CUDA driver cannot be loaded (" + LinkerError() + "). Install the NVIDIA driver to use a GPU.";
    return loaded;
  }
  const auto resolve = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (function == nullptr && loaded.why_not.empty()) {
      loaded.why_not = std::string("the CUDA driver has no ") + symbol + ". Update it to one for CUDA 11 or later.";
    }
  };
#define LIVEPOOL_RESOLVE(member, symbol, parameters) resolve(driver.member, symbol);
  LIVEPOOL_CUDA_DRIVER_FUNCTIONS(LIVEPOOL_RESOLVE)
#undef LIVEPOOL_RESOLVE
  if (!loaded.why_not.empty()) return loaded;
  if (const cuda::Result result = driver.Init(0); result != cuda::kSuccess) {
    loaded.why_not = "cuInit failed: " + DescribeResult(driver, result) + ". Check that nvidia-smi lists a device.";
  }
  return loaded;
}

}  // namespace

const CudaDriver* LoadCudaDriver(std::string* why_not) {
  // Never destroyed: deleters may still call the driver while static objects go.
  static const Loaded& loaded = *new Loaded(Load());
  if (loaded.why_not.empty()) return &loaded.driver;
  if (why_not != nullptr) *why_not = loaded.why_not;
  return nullptr;
}

std::string DescribeResult(const CudaDriver& driver, cuda::Result result) {
  const char* text = nullptr;
  if (driver.GetErrorString(result, &text) != cuda::kSuccess || text == nullptr) text = "unknown";
  return std::string(text) + " (error " + std::to_string(result) + ")";
}

}  // namespace livepool
