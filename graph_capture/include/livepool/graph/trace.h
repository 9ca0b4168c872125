// The recorded events of a pass: op begin and end, allocations, frees.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "livepool/plan/problem.h"
#include "livepool/pool/slot_table.h"
#include "livepool/pool/trace_sink.h"

namespace livepool {

using AllocationIndex = std::int32_t;

// The position of an event in the trace is its time on the event clock of the pass.
struct TraceEvent {
  enum class Kind : std::uint8_t { kOpBegin, kOpEnd, kAlloc, kFree };

  Kind kind = Kind::kOpBegin;
  std::int32_t index = 0;  // of the op, or of the allocation

  friend bool operator==(const TraceEvent&, const TraceEvent&) = default;
};

struct TraceAllocation {
  Bytes size = 0;           // as requested
  OpIndex op = -1;          // the op inside which it was made; -1: between ops
  std::int32_t nth = 0;     // counts the allocations of that op from 0
  bool same_stream = true;  // on the stream of the pass
  Time birth = 0;
  Time death = kNeverFreed;

  static constexpr Time kNeverFreed = -1;  // not before the pass ended
  friend bool operator==(const TraceAllocation&, const TraceAllocation&) = default;
};

struct Trace {
  std::vector<TraceEvent> events;
  std::vector<TraceAllocation> allocations;
  std::int32_t ops = 0;

  // Sum of all allocations, each rounded up to `alignment` bytes.
  Bytes SumBytes(Bytes alignment) const;
  // Max over time of what the pass has allocated and not freed, each rounded up to `alignment` bytes.
  // What outlives the pass and is not named in `outputs` was there for good (a library's workspace, say)
  // and is not counted.
  Bytes LivePeak(Bytes alignment, const std::vector<AllocationIndex>& outputs) const;
  friend bool operator==(const Trace&, const Trace&) = default;
};

// Writes a Trace while a pass runs on this thread. Ignores other devices.
class TraceWriter final : public TraceSink {
 public:
  TraceWriter(DeviceId device, StreamHandle stream) : device_(device), stream_(stream) {}

  // Ops do not nest: the recorder reports the outermost op that becomes a node of the graph.
  OpIndex BeginOp();
  void EndOp();
  void OnAlloc(DeviceId device, const void* address, Bytes size, StreamHandle stream) override;
  void OnFree(DeviceId device, const void* address) override;
  void OnSlotFree(DeviceId device, const void* address) override { OnFree(device, address); }

  // The allocation that starts at `address` and is not freed yet; -1 if there is none.
  AllocationIndex LiveAt(const void* address) const;
  const Trace& trace() const { return trace_; }

 private:
  void Push(TraceEvent::Kind kind, std::int32_t index) { trace_.events.push_back({kind, index}); }
  Time Now() const { return static_cast<Time>(trace_.events.size()); }

  const DeviceId device_;
  const StreamHandle stream_;
  Trace trace_;
  OpIndex op_ = -1;
  std::int32_t nth_ = 0;
  std::unordered_map<const void*, AllocationIndex> live_;
};

}  // namespace livepool
