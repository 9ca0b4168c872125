// One line of a CSV file: its cells, the numbers in them, and how messages quote them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace livepool::csv {

// A view into the line that it was cut from.
struct Cell {
  std::string_view text;
  std::size_t column = 1;  // of its first character in the line, from 1
};

// An empty line is one empty cell. Stops after `max_cells`, so that a line of a million commas costs nothing.
[[nodiscard]] std::vector<Cell> SplitAtCommas(std::string_view line, std::size_t max_cells);

// A whole number in 64 bits, or why the text is none.
struct Number {
  std::optional<std::int64_t> value;
  const char* fault = "";  // "is not a whole number"; empty if there is a value
};
[[nodiscard]] Number ParseNumber(std::string_view text);

// For a message of one line: short, and without control characters.
[[nodiscard]] std::string Quoted(std::string_view text);

}  // namespace livepool::csv
