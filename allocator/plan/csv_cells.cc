#include "csv_cells.h"

#include <charconv>
#include <system_error>

namespace livepool::csv {

std::vector<Cell> SplitAtCommas(std::string_view line, std::size_t max_cells) {
  std::vector<Cell> cells;
  std::size_t begin = 0;
  while (cells.size() < max_cells) {
    const std::size_t comma = line.find(',', begin);
    cells.push_back({line.substr(begin, comma - begin), begin + 1});
    if (comma == std::string_view::npos) break;
    begin = comma + 1;
  }
  return cells;
}

Number ParseNumber(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range && stop == end) return {std::nullopt, "is beyond 64 bits"};
  if (error != std::errc() || stop != end) return {std::nullopt, "is not a whole number"};
  return {value, ""};
}

std::string Quoted(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string quoted = "'" + std::string(text.substr(0, kLongest)) + (text.size() > kLongest ? "...'" : "'");
  for (char& c : quoted) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return quoted;
}

}  // namespace livepool::csv
