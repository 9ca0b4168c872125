// The process-wide settings of PyTorch that choose kernels and dtypes: composites read them at capture, and a
// replay under others would not be what the callable does then.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace livepool {

class GlobalSettings {
 public:
  static GlobalSettings Current();
  // The name of a setting that differs, as a person would look it up; none if all are equal.
  std::optional<std::string> Differs(const GlobalSettings& other) const;

  static constexpr std::size_t kCount = 18;
  // Opaque: equal arrays mean equal settings.
  const std::array<std::int64_t, kCount>& values() const { return values_; }

 private:
  std::array<std::int64_t, kCount> values_{};
};

}  // namespace livepool
