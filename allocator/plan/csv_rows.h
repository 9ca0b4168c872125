// A CSV file as rows of named cells. Every fault is reported with file, line and column.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csv_cells.h"

namespace livepool::csv {

enum Column : std::size_t { kId, kLower, kUpper, kSize, kAlignment, kOffset, kColumnCount };

class Rows {
 public:
  // Reads the header. `in` and `name`, the file in messages, must outlive this object. Throws InvalidInput for an empty
  // file, and for columns that are unknown, come twice or are missing.
  Rows(std::istream& in, const std::string& name);

  bool Has(Column column) const;

  // Goes to the next row; false at the end. Throws InvalidInput if it has another number of cells than the header.
  bool Next();

  // Of the current row, from here on.
  std::size_t line() const { return line_number_; }
  // Of a column that the file has.
  std::string_view text(Column column) const { return cells_.at(column)->text; }
  // None only for an optional column that is absent or whose cell is empty. Throws InvalidInput for other text.
  std::optional<std::int64_t> number(Column column) const;
  // Throws InvalidInput, as "name:line:column: what".
  [[noreturn]] void Fail(Column column, const std::string& what) const;

 private:
  bool NextLine();
  void ReadHeader();
  [[noreturn]] void FailAt(std::size_t column, const std::string& what) const;

  std::istream& in_;
  const std::string& name_;
  std::string line_;
  std::size_t line_number_ = 0;
  std::vector<std::size_t> header_;  // the columns as they come in the file
  // Of the current row; none where the file does not have the column.
  std::array<std::optional<Cell>, kColumnCount> cells_;
};

}  // namespace livepool::csv
