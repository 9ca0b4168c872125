// torch.cuda.memory._record_memory_history for slots.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "c10_compat.h"

namespace livepool {

// Upstream keeps the history of what it serves and cannot be told of more. So the entries of slots are kept here, under
// the same rules (ring of max_entries for each device, stacks on request, actions to skip), and merged by time into
// upstream's when a snapshot is taken. A slot's free is complete at once: both entries are written.
// Thread-safe.
class SlotHistory {
 public:
  using Entry = c10_compat::TraceEntry;

  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  // As CUDAAllocator::recordHistory.
  void Configure(bool enabled, c10_compat::CreateContextFn context, std::size_t max_entries,
                 c10_compat::RecordContext when, bool clear, const std::vector<std::string>& skip_actions);
  void Alloc(c10::DeviceIndex device, const void* slot, std::size_t size, cudaStream_t stream) noexcept;
  void Free(c10::DeviceIndex device, const void* slot, std::size_t size, cudaStream_t stream) noexcept;
  // Adds the entries to those of upstream, one list for each device.
  void MergeInto(std::vector<std::vector<Entry>>& traces) const;

 private:
  void Add(Entry entry, c10_compat::RecordContext stack_from) noexcept;

  std::atomic<bool> enabled_{false};
  mutable std::mutex mutex_;  // guards what follows
  c10_compat::CreateContextFn context_ = nullptr;
  std::size_t max_entries_ = 0;
  c10_compat::RecordContext when_ = c10_compat::RecordContext::NEVER;
  std::vector<Entry::Action> skipped_;
  std::vector<std::deque<Entry>> entries_;  // by device
};

}  // namespace livepool
