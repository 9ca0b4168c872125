#include "cuda_history.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace livepool {
namespace {

using Entry = SlotHistory::Entry;

// Microseconds since the epoch: what upstream's entries have once they are in a snapshot.
time_t Now() {
  using namespace std::chrono;
  return static_cast<time_t>(duration_cast<microseconds>(system_clock::now().time_since_epoch()).count());
}

Entry MakeEntry(Entry::Action action, c10::DeviceIndex device, const void* slot, std::size_t size,
                cudaStream_t stream) {
  Entry entry(action, device, reinterpret_cast<std::size_t>(slot), size, stream, {0, 0}, /*time=*/0);
  entry.time_.t_ = Now();
  return entry;
}

}  // namespace

void SlotHistory::Configure(bool enabled, c10_compat::CreateContextFn context, std::size_t max_entries,
                            c10_compat::RecordContext when, bool clear, const std::vector<std::string>& skip_actions) {
  std::vector<Entry::Action> skipped;
  for (const std::string& action : skip_actions) skipped.push_back(c10_compat::caching::parseTraceEntryAction(action));
  const std::lock_guard lock(mutex_);
  context_ = enabled ? context : nullptr;
  when_ = enabled ? when : c10_compat::RecordContext::NEVER;
  max_entries_ = std::max<std::size_t>(max_entries, 1);
  skipped_ = std::move(skipped);
  if (!enabled || clear) entries_.clear();
  enabled_.store(enabled, std::memory_order_relaxed);
}

void SlotHistory::Add(Entry entry, c10_compat::RecordContext stack_from) noexcept {
  try {
    c10_compat::CreateContextFn gather = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (when_ >= stack_from) gather = context_;
    }
    // Without the lock: it may take the GIL.
    if (gather != nullptr) entry.context_ = gather();
    const std::lock_guard lock(mutex_);
    if (!enabled() || std::find(skipped_.begin(), skipped_.end(), entry.action_) != skipped_.end()) return;
    const auto device = static_cast<std::size_t>(entry.device_);
    if (entries_.size() <= device) entries_.resize(device + 1);
    entries_[device].push_back(std::move(entry));
    if (entries_[device].size() > max_entries_) entries_[device].pop_front();
  } catch (...) {
    // Deleters come here; a line less in a history harms nobody.
  }
}

void SlotHistory::Alloc(c10::DeviceIndex device, const void* slot, std::size_t size, cudaStream_t stream) noexcept {
  Add(MakeEntry(Entry::ALLOC, device, slot, size, stream), c10_compat::RecordContext::ALLOC);
}

void SlotHistory::Free(c10::DeviceIndex device, const void* slot, std::size_t size, cudaStream_t stream) noexcept {
  Add(MakeEntry(Entry::FREE_REQUESTED, device, slot, size, stream), c10_compat::RecordContext::ALL);
  Add(MakeEntry(Entry::FREE_COMPLETED, device, slot, size, stream), c10_compat::RecordContext::ALL);
}

void SlotHistory::MergeInto(std::vector<std::vector<Entry>>& traces) const {
  const std::lock_guard lock(mutex_);
  if (traces.size() < entries_.size()) traces.resize(entries_.size());
  for (std::size_t device = 0; device < entries_.size(); ++device) {
    std::vector<Entry> merged;
    merged.reserve(traces[device].size() + entries_[device].size());
    std::merge(traces[device].begin(), traces[device].end(), entries_[device].begin(), entries_[device].end(),
               std::back_inserter(merged), [](const Entry& a, const Entry& b) { return a.time_.t_ < b.time_.t_; });
    traces[device] = std::move(merged);
  }
}

}  // namespace livepool
