#include <algorithm>
#include <cstddef>
#include <optional>
#include <ostream>
#include <string>

#include "livepool/base/error.h"
#include "livepool/plan/csv.h"

namespace livepool {
namespace {

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

}  // namespace

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
