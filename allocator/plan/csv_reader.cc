#include <algorithm>
#include <cstdint>
#include <fstream>
#include <istream>
#include <string>
#include <unordered_map>
#include <vector>

#include "csv_cells.h"
#include "csv_rows.h"
#include "livepool/base/error.h"
#include "livepool/plan/csv.h"

namespace livepool {
namespace {

using csv::Rows;

enum class Ids { kNumbers, kTexts };

class Reader {
 public:
  Reader(std::istream& in, const std::string& name, Ids ids) : rows_(in, name), ids_(ids) {}

  CsvTable Read() {
    CsvTable table;
    table.has_offsets = rows_.Has(csv::kOffset);
    while (rows_.Next()) {
      table.problem.buffers.push_back(ReadBuffer());
      table.ids.emplace_back(rows_.text(csv::kId));
    }
    SetIds(table);
    return table;
  }

 private:
  Buffer ReadBuffer() {
    Buffer buffer;
    if (ids_ == Ids::kNumbers) buffer.id = *rows_.number(csv::kId);
    buffer.lifetime = {*rows_.number(csv::kLower), *rows_.number(csv::kUpper)};
    buffer.size = *rows_.number(csv::kSize);
    buffer.alignment = rows_.number(csv::kAlignment).value_or(1);
    buffer.fixed_offset = rows_.number(csv::kOffset);
    CheckId(buffer);
    Check(buffer);
    return buffer;
  }

  void CheckId(const Buffer& buffer) {
    const std::string text(rows_.text(csv::kId));
    if (text.empty()) rows_.Fail(csv::kId, "the id is empty");
    const std::string id = ids_ == Ids::kNumbers ? std::to_string(buffer.id) : text;
    const auto [other, is_new] = line_of_id_.emplace(id, rows_.line());
    if (is_new) return;
    rows_.Fail(csv::kId, "id " + (ids_ == Ids::kNumbers ? id : csv::Quoted(id)) + " is taken by line " +
                             std::to_string(other->second));
  }

  void Check(const Buffer& buffer) {
    const auto& [birth, death] = buffer.lifetime;
    if (birth >= death) {
      rows_.Fail(csv::kUpper, "upper " + std::to_string(death) + " does not come after lower " + std::to_string(birth));
    }
    if (buffer.size <= 0) rows_.Fail(csv::kSize, "size " + std::to_string(buffer.size) + " is not positive");
    if (__builtin_add_overflow(total_, buffer.size, &total_)) rows_.Fail(csv::kSize, "the sizes sum past 64 bits");
    if (buffer.alignment <= 0) {
      rows_.Fail(csv::kAlignment, "alignment " + std::to_string(buffer.alignment) + " is not positive");
    }
    const Bytes offset = buffer.fixed_offset.value_or(0);
    if (offset < 0) rows_.Fail(csv::kOffset, "offset " + std::to_string(offset) + " is negative");
    if (offset % buffer.alignment != 0) {
      rows_.Fail(csv::kOffset, "offset " + std::to_string(offset) + " is not a multiple of alignment " +
                                   std::to_string(buffer.alignment));
    }
  }

  // Numbers only if all texts are, and no two are one number ("7" and "07").
  static void SetIds(CsvTable& table) {
    std::vector<std::int64_t> numbers;
    for (const std::string& text : table.ids) {
      if (const auto number = csv::ParseNumber(text).value) numbers.push_back(*number);
    }
    std::vector<std::int64_t> sorted = numbers;
    std::sort(sorted.begin(), sorted.end());
    const bool good =
        numbers.size() == table.ids.size() && std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    for (std::size_t i = 0; i < table.ids.size(); ++i) {
      table.problem.buffers[i].id = good ? numbers[i] : static_cast<std::int64_t>(i);
    }
  }

  Rows rows_;
  const Ids ids_;
  std::unordered_map<std::string, std::size_t> line_of_id_;
  Bytes total_ = 0;
};

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

}  // namespace livepool
