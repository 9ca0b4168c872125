// Sizes, and how they are rounded and printed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace livepool {

// A number of bytes, or an offset in bytes. Signed, so that differences are safe to compute.
using Bytes = std::int64_t;

inline namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return static_cast<Bytes>(n); }
constexpr Bytes operator""_KiB(unsigned long long n) { return static_cast<Bytes>(n) << 10; }
constexpr Bytes operator""_MiB(unsigned long long n) { return static_cast<Bytes>(n) << 20; }
constexpr Bytes operator""_GiB(unsigned long long n) { return static_cast<Bytes>(n) << 30; }
}  // namespace literals

// The smallest multiple of `alignment` (any positive number) that is not below `n` (n >= 0).
constexpr Bytes AlignUp(Bytes n, Bytes alignment) { return (n + alignment - 1) / alignment * alignment; }

// "512 B", "1.50 MiB": for people; three significant digits after the first unit.
std::string FormatBytes(Bytes n);

// The reverse, for settings: "8GiB", "1.5 GiB", "512MiB", "1073741824", "64 B". Nothing where `text` is no such size,
// is negative, or does not fit into Bytes.
std::optional<Bytes> ParseBytes(std::string_view text);

}  // namespace livepool
