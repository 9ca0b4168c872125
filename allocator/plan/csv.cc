#include "livepool/plan/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <istream>
#include <optional>
#include <ostream>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
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

// For a message of one line: short, and without control characters.
std::string Quoted(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string quoted = "'" + std::string(text.substr(0, kLongest)) + (text.size() > kLongest ? "...'" : "'");
  for (char& c : quoted) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return quoted;
}

std::optional<std::int64_t> ToNumber(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

enum class Ids { kNumbers, kTexts };

class Reader {
 public:
  Reader(std::istream& in, const std::string& name, Ids ids) : in_(in), name_(name), ids_(ids) {}

  CsvTable Read() {
    if (!NextLine()) Fail(1, "the file is empty; expected a header like id,lower,upper,size");
    ReadHeader();
    CsvTable table;
    table.has_offsets = std::count(header_.begin(), header_.end(), kOffset) > 0;
    while (NextLine()) {
      const Row row = ReadRow();
      table.problem.buffers.push_back(ReadBuffer(row));
      table.ids.emplace_back(row[kId]->text);
    }
    SetIds(table);
    return table;
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

  // Numbers only if all texts are, and no two are one number ("7" and "07").
  static void SetIds(CsvTable& table) {
    std::vector<std::int64_t> numbers;
    for (const std::string& text : table.ids) {
      if (const auto number = ToNumber(text)) numbers.push_back(*number);
    }
    std::vector<std::int64_t> sorted = numbers;
    std::sort(sorted.begin(), sorted.end());
    const bool good =
        numbers.size() == table.ids.size() && std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    for (std::size_t i = 0; i < table.ids.size(); ++i) {
      table.problem.buffers[i].id = good ? numbers[i] : static_cast<std::int64_t>(i);
    }
  }

  Buffer ReadBuffer(const Row& row) {
    Buffer buffer;
    if (ids_ == Ids::kNumbers) buffer.id = *Number(row, kId);
    if (row[kId]->text.empty()) Fail(row, kId, "the id is empty");
    buffer.lifetime = {*Number(row, kLower), *Number(row, kUpper)};
    buffer.size = *Number(row, kSize);
    buffer.alignment = Number(row, kAlignment).value_or(1);
    buffer.fixed_offset = Number(row, kOffset);
    Check(row, buffer);
    return buffer;
  }

  void Check(const Row& row, const Buffer& buffer) {
    const std::string id = ids_ == Ids::kNumbers ? std::to_string(buffer.id) : std::string(row[kId]->text);
    const auto [line, is_new] = line_of_id_.emplace(id, line_number_);
    if (!is_new) {
      const std::string shown = ids_ == Ids::kNumbers ? id : Quoted(id);
      Fail(row, kId, "id " + shown + " is taken by line " + std::to_string(line->second));
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
  const Ids ids_;
  std::string line_;
  std::size_t line_number_ = 0;
  std::vector<std::size_t> header_;  // the columns as they come in the file
  std::unordered_map<std::string, std::size_t> line_of_id_;
  Bytes total_ = 0;
};

// `id(i)` and `offset(i)` are the cells for buffer i; the latter is an optional number.
template <typename Id, typename Offset>
void Write(std::ostream& out, const Problem& problem, Id id, bool with_offset, Offset offset) {
  const bool with_alignment = std::any_of(problem.buffers.begin(), problem.buffers.end(),
                                          [](const Buffer& buffer) { return buffer.alignment != 1; });
  out << "id,lower,upper,size" << (with_alignment ? ",alignment" : "") << (with_offset ? ",offset" : "") << '\n';
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    out << id(i) << ',' << buffer.lifetime.birth << ',' << buffer.lifetime.death << ',' << buffer.size;
    if (with_alignment) out << ',' << buffer.alignment;
    if (with_offset) out << ',';
    if (const std::optional<Bytes> number = offset(i)) out << *number;
    out << '\n';
  }
}

template <typename Id>
void WritePlan(std::ostream& out, const Problem& problem, const Plan& plan, Id id) {
  if (plan.offsets.size() != problem.buffers.size()) {
    throw InvalidInput("cannot write " + std::to_string(plan.offsets.size()) + " offsets for " +
                       std::to_string(problem.buffers.size()) + " buffers: there must be one for each");
  }
  Write(out, problem, id, true, [&](std::size_t i) { return std::optional<Bytes>(plan.offsets[i]); });
}

std::ifstream Open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InvalidInput(path + ": cannot be opened");
  return file;
}

}  // namespace

Problem ReadCsv(std::istream& in, const std::string& name) { return Reader(in, name, Ids::kNumbers).Read().problem; }

Problem ReadCsvFile(const std::string& path) {
  std::ifstream file = Open(path);
  return ReadCsv(file, path);
}

CsvTable ReadCsvTable(std::istream& in, const std::string& name) { return Reader(in, name, Ids::kTexts).Read(); }

CsvTable ReadCsvTableFile(const std::string& path) {
  std::ifstream file = Open(path);
  return ReadCsvTable(file, path);
}

void WriteCsv(std::ostream& out, const Problem& problem) {
  const bool with_offset = std::any_of(problem.buffers.begin(), problem.buffers.end(),
                                       [](const Buffer& buffer) { return buffer.fixed_offset.has_value(); });
  Write(
      out, problem, [&](std::size_t i) { return problem.buffers[i].id; }, with_offset,
      [&](std::size_t i) { return problem.buffers[i].fixed_offset; });
}

void WriteCsv(std::ostream& out, const Problem& problem, const Plan& plan) {
  WritePlan(out, problem, plan, [&](std::size_t i) { return problem.buffers[i].id; });
}

void WriteCsv(std::ostream& out, const CsvTable& table, const Plan& plan) {
  WritePlan(out, table.problem, plan, [&](std::size_t i) -> const std::string& { return table.ids[i]; });
}

}  // namespace livepool
