#include "csv_rows.h"

#include <algorithm>
#include <istream>

#include "livepool/base/error.h"

namespace livepool::csv {
namespace {

constexpr std::array<std::string_view, kColumnCount> kNames{"id", "lower", "upper", "size", "alignment", "offset"};

// A file may lack the column, and a cell in it may be empty.
bool IsOptional(std::size_t column) { return column == kAlignment || column == kOffset; }

}  // namespace

Rows::Rows(std::istream& in, const std::string& name) : in_(in), name_(name) {
  if (!NextLine()) FailAt(1, "the file is empty; expected a header like id,lower,upper,size");
  ReadHeader();
}

bool Rows::Has(Column column) const { return std::count(header_.begin(), header_.end(), column) > 0; }

bool Rows::NextLine() {
  ++line_number_;
  if (!std::getline(in_, line_)) {
    if (in_.bad()) FailAt(1, "cannot be read");
    return false;
  }
  if (line_.ends_with('\r')) line_.pop_back();
  return true;
}

void Rows::ReadHeader() {
  // Among one cell more than there are columns, one is unknown or comes twice.
  for (const Cell& cell : SplitAtCommas(line_, kColumnCount + 1)) {
    const auto* const name = std::find(kNames.begin(), kNames.end(), cell.text);
    if (name == kNames.end()) FailAt(cell.column, "unknown column " + Quoted(cell.text));
    const auto column = static_cast<Column>(name - kNames.begin());
    if (Has(column)) FailAt(cell.column, "column " + Quoted(cell.text) + " comes twice");
    header_.push_back(column);
  }
  for (std::size_t column = 0; column < kColumnCount; ++column) {
    if (IsOptional(column) || Has(static_cast<Column>(column))) continue;
    FailAt(1, "column " + Quoted(kNames.at(column)) + " is missing");
  }
}

bool Rows::Next() {
  if (!NextLine()) return false;
  const std::vector<Cell> cells = SplitAtCommas(line_, header_.size() + 1);
  if (cells.size() != header_.size()) {
    const auto found = 1 + std::count(line_.begin(), line_.end(), ',');
    FailAt(cells.size() > header_.size() ? cells.back().column : line_.size() + 1,
           "expected " + std::to_string(header_.size()) + " cells, found " + std::to_string(found));
  }
  for (std::size_t i = 0; i < cells.size(); ++i) cells_.at(header_[i]) = cells[i];
  return true;
}

std::optional<std::int64_t> Rows::number(Column column) const {
  const std::optional<Cell>& cell = cells_.at(column);
  if (!cell || (cell->text.empty() && IsOptional(column))) return std::nullopt;
  const Number number = ParseNumber(cell->text);
  if (!number.value) Fail(column, Quoted(cell->text) + " " + number.fault);
  return number.value;
}

void Rows::Fail(Column column, const std::string& what) const { FailAt(cells_.at(column)->column, what); }

void Rows::FailAt(std::size_t column, const std::string& what) const {
  throw InvalidInput(name_ + ":" + std::to_string(line_number_) + ":" + std::to_string(column) + ": " + what);
}

}  // namespace livepool::csv
