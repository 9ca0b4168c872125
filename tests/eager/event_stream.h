// A program as its allocator sees it: passes, allocations, frees.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "livepool/base/units.h"
#include "livepool/eager/key.h"

namespace livepool::testing {

struct StreamEvent {
  enum class Kind : std::uint8_t { kBegin, kEnd, kThrow, kAlloc, kFree };

  Kind kind = Kind::kBegin;
  std::int64_t id = 0;  // kAlloc, kFree: of the buffer, unique in the stream. kBegin: of the shape of the pass
  Site site = 0;        // kAlloc; kFree: depth of the stack frame that frees, bytes
  Bytes size = 0;       // kAlloc
};
using EventStream = std::vector<StreamEvent>;

inline StreamEvent Begin(std::int64_t shape) { return {.kind = StreamEvent::Kind::kBegin, .id = shape}; }
inline StreamEvent End() { return {.kind = StreamEvent::Kind::kEnd}; }
inline StreamEvent Throw() { return {.kind = StreamEvent::Kind::kThrow}; }
inline StreamEvent Alloc(std::int64_t id, Site site, Bytes size) {
  return {.kind = StreamEvent::Kind::kAlloc, .id = id, .site = site, .size = size};
}
// A free without a depth is deeper than all others: it tells nothing.
constexpr Site kDeep = 1U << 24;
inline StreamEvent Free(std::int64_t id, Site depth = kDeep) {
  return {.kind = StreamEvent::Kind::kFree, .id = id, .site = depth};
}

// One event a line: "begin SHAPE", "end", "throw", "alloc ID SITE SIZE", "free ID" or "free ID DEPTH". Throws
// InvalidInput, as "name:line: what".
EventStream ReadEvents(std::istream& in, const std::string& name);

}  // namespace livepool::testing
