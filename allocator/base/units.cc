#include "livepool/base/units.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace livepool {

std::string FormatBytes(Bytes n) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(n);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits.at(unit));
  return text.data();
}

}  // namespace livepool
