#include "livepool/graph/trace.h"

#include <algorithm>

namespace livepool {

Bytes Trace::SumBytes(Bytes alignment) const {
  Bytes sum = 0;
  for (const TraceAllocation& allocation : allocations) sum += AlignUp(allocation.size, alignment);
  return sum;
}

Bytes Trace::LivePeak(Bytes alignment, const std::vector<AllocationIndex>& outputs) const {
  Bytes live = 0;
  Bytes peak = 0;
  for (const TraceEvent& event : events) {
    if (event.kind != TraceEvent::Kind::kAlloc && event.kind != TraceEvent::Kind::kFree) continue;
    const TraceAllocation& allocation = allocations[static_cast<std::size_t>(event.index)];
    const bool persistent = allocation.death == TraceAllocation::kNeverFreed &&
                            std::find(outputs.begin(), outputs.end(), event.index) == outputs.end();
    if (persistent) continue;
    const Bytes size = AlignUp(allocation.size, alignment);
    live += event.kind == TraceEvent::Kind::kAlloc ? size : -size;
    peak = std::max(peak, live);
  }
  return peak;
}

OpIndex TraceWriter::BeginOp() {
  op_ = trace_.ops++;
  nth_ = 0;
  Push(TraceEvent::Kind::kOpBegin, op_);
  return op_;
}

void TraceWriter::EndOp() {
  Push(TraceEvent::Kind::kOpEnd, op_);
  op_ = -1;
}

void TraceWriter::OnAlloc(DeviceId device, const void* address, Bytes size, StreamHandle stream) {
  if (!(device == device_)) return;
  const auto index = static_cast<AllocationIndex>(trace_.allocations.size());
  trace_.allocations.push_back(
      {.size = size, .op = op_, .nth = op_ < 0 ? 0 : nth_++, .same_stream = stream == stream_, .birth = Now()});
  Push(TraceEvent::Kind::kAlloc, index);
  live_[address] = index;
}

void TraceWriter::OnFree(DeviceId device, const void* address) {
  if (!(device == device_)) return;
  const auto it = live_.find(address);
  if (it == live_.end()) return;  // allocated before the pass
  trace_.allocations[static_cast<std::size_t>(it->second)].death = Now();
  Push(TraceEvent::Kind::kFree, it->second);
  live_.erase(it);
}

AllocationIndex TraceWriter::LiveAt(const void* address) const {
  const auto it = live_.find(address);
  return it == live_.end() ? -1 : it->second;
}

}  // namespace livepool
