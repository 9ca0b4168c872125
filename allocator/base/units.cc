#include "livepool/base/units.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace livepool {
namespace {

constexpr std::array<const char*, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

}  // namespace

std::string FormatBytes(Bytes n) {
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

std::optional<Bytes> ParseBytes(std::string_view text) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  std::string_view unit(stop, static_cast<std::size_t>(text.data() + text.size() - stop));
  if (error != std::errc() || std::signbit(value)) return std::nullopt;
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto found = unit.empty() ? kUnits.begin() : std::find(kUnits.begin(), kUnits.end(), unit);
  if (found == kUnits.end()) return std::nullopt;
  value = std::ldexp(value, 10 * static_cast<int>(found - kUnits.begin()));
  if (!(value < 0x1p63)) return std::nullopt;
  return static_cast<Bytes>(value);
}

}  // namespace livepool
