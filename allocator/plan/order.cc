#include "order.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

namespace livepool {
namespace {

// Every key becomes a column of unsigned numbers that sort ascending. Largest first is the complement, which has no
// overflow, unlike a minus sign.
using Column = std::vector<std::uint64_t>;

std::uint64_t Ascending(std::int64_t n) { return static_cast<std::uint64_t>(n) ^ (std::uint64_t{1} << 63); }
std::uint64_t Descending(std::int64_t n) { return ~Ascending(n); }
std::uint64_t Descending(std::uint64_t n) { return ~n; }

// Exact for all lifetimes, also those longer than a Time can say.
std::uint64_t Length(const Lifetime& lifetime) {
  return static_cast<std::uint64_t>(lifetime.death) - static_cast<std::uint64_t>(lifetime.birth);
}

// The exact product needs 128 bits. Rounding it only makes near ties ties. The bits of non-negative doubles sort
// as the doubles do.
std::uint64_t Area(const Buffer& buffer) {
  return std::bit_cast<std::uint64_t>(static_cast<double>(buffer.size) * static_cast<double>(Length(buffer.lifetime)));
}

template <typename Function>
Column MakeColumn(const Problem& problem, Function key) {
  Column column(problem.buffers.size());
  std::transform(problem.buffers.begin(), problem.buffers.end(), column.begin(), key);
  return column;
}

Column MakeColumn(const Problem& problem, const Sections& sections, Key key) {
  switch (key) {
    case Key::kBirth:
      return MakeColumn(problem, [](const Buffer& b) { return Ascending(b.lifetime.birth); });
    case Key::kDeath:
      return MakeColumn(problem, [](const Buffer& b) { return Descending(b.lifetime.death); });
    case Key::kLifetime:
      return MakeColumn(problem, [](const Buffer& b) { return Descending(Length(b.lifetime)); });
    case Key::kSize:
      return MakeColumn(problem, [](const Buffer& b) { return Descending(b.size); });
    case Key::kArea:
      return MakeColumn(problem, [](const Buffer& b) { return Descending(Area(b)); });
    case Key::kAlignment:
      return MakeColumn(problem, [](const Buffer& b) { return Descending(b.alignment); });
    case Key::kPeak: {
      Column column;
      column.reserve(problem.buffers.size());
      for (const Bytes peak : PeaksAround(sections)) column.push_back(Descending(peak));
      return column;
    }
    case Key::kSections: {
      Column column;
      column.reserve(problem.buffers.size());
      for (const SectionRange& range : sections.ranges) column.push_back(Descending(range.end - range.begin));
      return column;
    }
  }
  return {};  // not reached: the switch is complete
}

const char* Name(Key key) {
  switch (key) {
    case Key::kBirth:
      return "birth";
    case Key::kDeath:
      return "death";
    case Key::kLifetime:
      return "lifetime";
    case Key::kSize:
      return "size";
    case Key::kArea:
      return "area";
    case Key::kPeak:
      return "peak";
    case Key::kSections:
      return "sections";
    case Key::kAlignment:
      return "alignment";
  }
  return "";  // not reached
}

}  // namespace

std::string ToString(const Order& order) {
  std::string text;
  for (const Key key : order) {
    if (!text.empty()) text += ", ";
    text += Name(key);
  }
  return text;
}

std::vector<std::size_t> SortBuffers(const Problem& problem, const Sections& sections, const Order& order) {
  std::vector<Column> columns;
  for (const Key key : order) columns.push_back(MakeColumn(problem, sections, key));

  std::vector<std::size_t> sorted(problem.buffers.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
    for (const Column& column : columns) {
      if (column[a] != column[b]) return column[a] < column[b];
    }
    return problem.buffers[a].id < problem.buffers[b].id;
  });
  return sorted;
}

}  // namespace livepool
