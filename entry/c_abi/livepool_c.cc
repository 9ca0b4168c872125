#include "livepool_c.h"

#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "livepool/torch/install.h"

namespace {

thread_local std::string last_error;

std::optional<livepool::DeviceId::Kind> ParseKind(const char* device) {
  const std::string_view name = device == nullptr ? "" : device;
  if (name == "cpu") return livepool::DeviceId::Kind::kHost;
  if (name == "cuda") return livepool::DeviceId::Kind::kCuda;
  return std::nullopt;
}

}  // namespace

extern "C" int livepool_install(const char* device) {
  last_error.clear();
  const auto kind = ParseKind(device);
  if (!kind.has_value()) {
    last_error = "livepool: a device is \"cpu\" or \"cuda\"";
    return 1;
  }
  try {
    livepool::Install(*kind);
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "livepool: unknown error";
  }
  return 1;
}

extern "C" int livepool_installed(const char* device) {
  const auto kind = ParseKind(device);
  return kind.has_value() && livepool::Installed(*kind) ? 1 : 0;
}

extern "C" const char* livepool_last_error(void) { return last_error.c_str(); }
