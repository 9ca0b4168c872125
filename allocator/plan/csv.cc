#include "livepool/plan/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <istream>
#include <map>
#include <optional>
#include <ostream>
#include <string_view>
#include <system_error>
#include <vector>

#include "livepool/base/error.h"

namespace livepool {
namespace {

enum Column : std::size_t { kId, kLower, kUpper, kSize, kAlignment, kOffset, kColumnCount };
constexpr std::array<std::string_view, kColumnCount> kColumnNames{"id",   "lower",     "upper",
                                                                  "size", "alignment", "offset"};
bool IsOptional(std::size_t column) { return column == kAlignment || column == kOffset; }

struct Cell {
  std::string_view text;
  std::size_t column = 1;  // of its first character in the line, from 1
};

std::vector<Cell> SplitAtCommas(std::string_view line) {
  std::vector<Cell> cells;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = line.find(',', begin);
    cells.push_back({line.substr(begin, comma - begin), begin + 1});
    if (comma == std::string_view::npos) return cells;
    begin = comma + 1;
  }
}

std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

class Reader {
 public:
  Reader(std::istream& in, const std::string& name) : in_(in), name_(name) {}

  Problem Read() {
    if (!NextLine()) Fail(1, "the file is empty; expected a header like id,lower,upper,size");
    ReadHeader();
    Problem problem;
    while (NextLine()) problem.buffers.push_back(ReadBuffer());
    return problem;
  }

 private:
  // One cell for each column of the format; none where the file does not have the column.
  using Row = std::array<std::optional<Cell>, kColumnCount>;

  bool NextLine() {
    ++line_number_;
    if (!std::getline(in_, line_)) {
      if (in_.bad()) Fail(1, "cannot be read");
      return false;
    }
    if (line_.ends_with('\r')) line_.pop_back();
    return true;
  }

  void ReadHeader() {
    for (const Cell& cell : SplitAtCommas(line_)) {
      const auto* const name = std::find(kColumnNames.begin(), kColumnNames.end(), cell.text);
      if (name == kColumnNames.end()) Fail(cell.column, "unknown column " + Quoted(cell.text));
      const auto column = static_cast<std::size_t>(name - kColumnNames.begin());
      if (std::count(header_.begin(), header_.end(), column) > 0) {
        Fail(cell.column, "column " + Quoted(cell.text) + " comes twice");
      }
      header_.push_back(column);
    }
    for (std::size_t column = 0; column < kColumnCount; ++column) {
      if (!IsOptional(column) && std::count(header_.begin(), header_.end(), column) == 0) {
        Fail(1, "column " + Quoted(kColumnNames.at(column)) + " is missing");
      }
    }
  }

  Row ReadRow() const {
    const std::vector<Cell> cells = SplitAtCommas(line_);
    if (cells.size() != header_.size()) {
      Fail(cells.size() > header_.size() ? cells[header_.size()].column : line_.size() + 1,
           "expected " + std::to_string(header_.size()) + " cells, found " + std::to_string(cells.size()));
    }
    Row row;
    for (std::size_t i = 0; i < cells.size(); ++i) row.at(header_[i]) = cells[i];
    return row;
  }

  Buffer ReadBuffer() {
    const Row row = ReadRow();
    Buffer buffer;
    buffer.id = *Number(row, kId);
    buffer.lifetime = {*Number(row, kLower), *Number(row, kUpper)};
    buffer.size = *Number(row, kSize);
    buffer.alignment = Number(row, kAlignment).value_or(1);
    buffer.fixed_offset = Number(row, kOffset);
    Check(row, buffer);
    return buffer;
  }

  void Check(const Row& row, const Buffer& buffer) {
    const auto [line, is_new] = line_of_id_.emplace(buffer.id, line_number_);
    if (!is_new) {
      Fail(row, kId, "id " + std::to_string(buffer.id) + " is taken by line " + std::to_string(line->second));
    }
    if (buffer.lifetime.birth >= buffer.lifetime.death) {
      Fail(row, kUpper,
           "upper " + std::to_string(buffer.lifetime.death) + " does not come after lower " +
               std::to_string(buffer.lifetime.birth));
    }
    if (buffer.size <= 0) Fail(row, kSize, "size " + std::to_string(buffer.size) + " is not positive");
    if (__builtin_add_overflow(total_, buffer.size, &total_)) Fail(row, kSize, "the sizes sum past 64 bits");
    if (buffer.alignment <= 0) {
      Fail(row, kAlignment, "alignment " + std::to_string(buffer.alignment) + " is not positive");
    }
    const Bytes offset = buffer.fixed_offset.value_or(0);
    if (offset < 0) Fail(row, kOffset, "offset " + std::to_string(offset) + " is negative");
    if (offset % buffer.alignment != 0) {
      Fail(row, kOffset,
           "offset " + std::to_string(offset) + " is not a multiple of alignment " + std::to_string(buffer.alignment));
    }
  }

  // None only for an optional column that is absent or whose cell is empty.
  std::optional<std::int64_t> Number(const Row& row, Column column) const {
    const std::optional<Cell>& cell = row.at(column);
    if (!cell || (cell->text.empty() && IsOptional(column))) return std::nullopt;
    std::int64_t number = 0;
    const char* const end = cell->text.data() + cell->text.size();
    const auto [stop, error] = std::from_chars(cell->text.data(), end, number);
    if (error == std::errc::result_out_of_range) Fail(row, column, Quoted(cell->text) + " is beyond 64 bits");
    if (error != std::errc() || stop != end) Fail(row, column, Quoted(cell->text) + " is not a whole number");
    return number;
  }

  [[noreturn]] void Fail(std::size_t column, const std::string& what) const {
    throw InvalidInput(name_ + ":" + std::to_string(line_number_) + ":" + std::to_string(column) + ": " + what);
  }
  // At the row's cell of `column`, which it has.
  [[noreturn]] void Fail(const Row& row, Column column, const std::string& what) const {
    Fail(row.at(column)->column, what);
  }

  std::istream& in_;
  const std::string& name_;
  std::string line_;
  std::size_t line_number_ = 0;
  std::vector<std::size_t> header_;  // the columns as they come in the file
  std::map<std::int64_t, std::size_t> line_of_id_;
  Bytes total_ = 0;
};

// `offset(i)` is the cell for buffer i: an optional number.
template <typename Offset>
void Write(std::ostream& out, const Problem& problem, bool with_offset, Offset offset) {
  const bool with_alignment = std::any_of(problem.buffers.begin(), problem.buffers.end(),
                                          [](const Buffer& buffer) { return buffer.alignment != 1; });
  out << "id,lower,upper,size" << (with_alignment ? ",alignment" : "") << (with_offset ? ",offset" : "") << '\n';
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    out << buffer.id << ',' << buffer.lifetime.birth << ',' << buffer.lifetime.death << ',' << buffer.size;
    if (with_alignment) out << ',' << buffer.alignment;
    if (with_offset) out << ',';
    if (const std::optional<Bytes> number = offset(i)) out << *number;
    out << '\n';
  }
}

}  // namespace

Problem ReadCsv(std::istream& in, const std::string& name) { return Reader(in, name).Read(); }

Problem ReadCsvFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InvalidInput(path + ": cannot be opened");
  return ReadCsv(file, path);
}

void WriteCsv(std::ostream& out, const Problem& problem) {
  const bool with_offset = std::any_of(problem.buffers.begin(), problem.buffers.end(),
                                       [](const Buffer& buffer) { return buffer.fixed_offset.has_value(); });
  Write(out, problem, with_offset, [&](std::size_t i) { return problem.buffers[i].fixed_offset; });
}

void WriteCsv(std::ostream& out, const Problem& problem, const Plan& plan) {
  if (plan.offsets.size() != problem.buffers.size()) {
    throw InvalidInput("cannot write " + std::to_string(plan.offsets.size()) + " offsets for " +
                       std::to_string(problem.buffers.size()) + " buffers: there must be one for each");
  }
  Write(out, problem, true, [&](std::size_t i) { return std::optional<Bytes>(plan.offsets[i]); });
}

}  // namespace livepool
