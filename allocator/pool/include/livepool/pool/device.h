// Which device's memory an event or an arena is about.
#pragma once

#include <string>

namespace livepool {

struct DeviceId {
  enum class Kind { kHost, kCuda };

  Kind kind = Kind::kHost;
  int index = 0;  // always 0 for the host

  std::string Name() const { return kind == Kind::kHost ? "cpu" : "cuda:" + std::to_string(index); }
  friend bool operator==(const DeviceId&, const DeviceId&) = default;
};

}  // namespace livepool
