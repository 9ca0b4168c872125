#include "check_problem.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "livepool/base/error.h"
#include "placed_buffers.h"
#include "rule.h"

namespace livepool {
namespace {

std::string Name(const Buffer& buffer) { return "buffer " + std::to_string(buffer.id); }

[[noreturn]] void Refuse(const Buffer& buffer, const std::string& what) {
  throw InvalidInput(Name(buffer) + ": " + what);
}

void CheckBuffer(const Buffer& buffer) {
  const auto& [birth, death] = buffer.lifetime;
  if (buffer.size <= 0) {
    Refuse(buffer, "size " + std::to_string(buffer.size) + " is not positive; leave such buffers out");
  }
  if (buffer.alignment <= 0) {
    Refuse(buffer, "alignment " + std::to_string(buffer.alignment) + " is not positive; 1 means none");
  }
  if (birth >= death) {
    Refuse(buffer, "lifetime [" + std::to_string(birth) + ", " + std::to_string(death) +
                       ") is empty; its death must come after its birth");
  }
  if (!buffer.fixed_offset) return;
  const Bytes offset = *buffer.fixed_offset;
  if (offset < 0) Refuse(buffer, "fixed offset " + std::to_string(offset) + " is negative");
  if (offset % buffer.alignment != 0) {
    Refuse(buffer, "fixed offset " + std::to_string(offset) + " is not a multiple of its alignment " +
                       std::to_string(buffer.alignment));
  }
}

void CheckIdsAreUnique(const Problem& problem) {
  std::vector<std::int64_t> ids;
  ids.reserve(problem.buffers.size());
  for (const Buffer& buffer : problem.buffers) ids.push_back(buffer.id);
  std::sort(ids.begin(), ids.end());
  const auto twin = std::adjacent_find(ids.begin(), ids.end());
  if (twin != ids.end()) {
    throw InvalidInput("buffer " + std::to_string(*twin) + ": two buffers have this id");
  }
}

// The invariant that the header states.
void CheckStackFits(const Problem& problem) {
  Bytes top = 0;
  for (const Buffer& buffer : problem.buffers) {
    if (!buffer.fixed_offset) continue;
    Bytes end = 0;
    if (__builtin_add_overflow(*buffer.fixed_offset, buffer.size, &end) || end == kNoLimit) {
      Refuse(buffer, "fixed offset + size passes 64 bits");
    }
    top = std::max(top, end);
  }
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.fixed_offset) continue;
    if (__builtin_add_overflow(top, buffer.size, &top) || __builtin_add_overflow(top, buffer.alignment - 1, &top) ||
        top == kNoLimit) {
      Refuse(buffer, "with it, the sizes (with alignment) sum past 64 bits");
    }
  }
}

void CheckFixedAreDisjoint(const Problem& problem) {
  PlacedBuffers fixed(problem);
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (!buffer.fixed_offset) continue;
    const Bytes begin = *buffer.fixed_offset;
    const Bytes end = begin + buffer.size;
    for (const PlacedBuffers::Range& other : fixed.During(buffer.lifetime)) {
      if (begin < other.end && other.begin < end) {
        Refuse(buffer, "its fixed offset shares bytes with " + Name(problem.buffers[other.buffer]) +
                           ", which is fixed too and alive at the same time");
      }
    }
    fixed.Insert(i, begin);
  }
}

}  // namespace

void CheckProblem(const Problem& problem) {
  for (const Buffer& buffer : problem.buffers) CheckBuffer(buffer);
  CheckIdsAreUnique(problem);
  CheckStackFits(problem);
  CheckFixedAreDisjoint(problem);
}

}  // namespace livepool
