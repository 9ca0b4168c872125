#include "eager/simulator.h"

#include <iterator>

namespace livepool::testing {
namespace {

const auto* const kEntry = reinterpret_cast<const std::byte*>(std::uintptr_t{1} << 40);

// Pools are immortal; a list keeps them in sight of the leak checker.
ArenaPool& NewPool(Bytes alignment) {
  static auto* all = new std::vector<ArenaPool*>;
  all->push_back(new ArenaPool({}, std::make_unique<NumbersBackend>(alignment), 64_GiB));
  return *all->back();
}

}  // namespace

std::byte* NumbersBackend::Reserve(Bytes size) {
  static std::uintptr_t next = std::uintptr_t{1} << 45;
  const std::uintptr_t address = next;
  next += static_cast<std::uintptr_t>(AlignUp(size, 1_GiB));
  return reinterpret_cast<std::byte*>(address);
}

const std::byte* NumbersUpstream::Allocate(Bytes size) {
  std::vector<const std::byte*>& free = free_[size];
  if (!free.empty()) {
    const std::byte* address = free.back();
    free.pop_back();
    return address;
  }
  const std::uintptr_t address = next_;
  next_ += static_cast<std::uintptr_t>(size);
  return reinterpret_cast<const std::byte*>(address);
}

bool OverlapChecker::Add(const std::byte* address, Bytes size) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t end = begin + static_cast<std::uintptr_t>(size);
  const auto after = end_of_.lower_bound(begin);
  const bool free = (after == end_of_.end() || after->first >= end) &&
                    (after == end_of_.begin() || std::prev(after)->second <= begin);
  end_of_[begin] = end;
  return free;
}

HitCount& HitCount::operator+=(const HitCount& other) {
  hits += other.hits;
  plannable += other.plannable;
  hit_bytes += other.hit_bytes;
  plannable_bytes += other.plannable_bytes;
  return *this;
}

HitCount SimulationResult::From(std::size_t occurrence) const {
  HitCount sum;
  for (std::size_t i = occurrence - 1; i < by_occurrence.size(); ++i) sum += by_occurrence[i];
  return sum;
}

Simulator::Simulator(Bytes alignment)
    : alignment_(alignment),
      pool_(NewPool(alignment)),
      scope_(std::make_shared<ScopePlans>("simulated", alignment, [](const std::function<void()>& job) {
        job();
        return true;
      })) {}

void Simulator::Run(const EventStream& events) {
  for (const StreamEvent& event : events) {
    switch (event.kind) {
      case StreamEvent::Kind::kBegin:
        ++passes_;
        occurrence_ = occurrences_[event.id]++;
        if (by_occurrence_.size() <= occurrence_) by_occurrence_.resize(occurrence_ + 1);
        pass_ = std::make_unique<EagerPass>(scope_, pool_, nullptr, kEntry, livepool::Fill::kNone);
        break;
      case StreamEvent::Kind::kThrow:
        pass_->Abandon();
        [[fallthrough]];
      case StreamEvent::Kind::kEnd:
        pass_.reset();
        break;
      case StreamEvent::Kind::kAlloc:
        Allocate(event);
        break;
      case StreamEvent::Kind::kFree:
        Free(event.id);
        break;
    }
  }
}

// What allocate() of the allocators in allocator/torch does.
void Simulator::Allocate(const StreamEvent& event) {
  Buffer buffer{.size = AlignUp(event.size, alignment_)};
  if (pass_ != nullptr) {
    buffer.pass = passes_;
    buffer.address = pass_->Serve(event.size, nullptr, kEntry - event.site);
  }
  buffer.hit = buffer.address != nullptr;
  if (!buffer.hit) {
    buffer.address = upstream_.Allocate(buffer.size);
    if (pass_ != nullptr) pass_->OnAlloc({}, buffer.address, event.size, nullptr);
  }
  if (!checker_.Add(buffer.address, buffer.size)) ++overlaps_;
  live_[event.id] = buffer;
}

void Simulator::Free(std::int64_t id) {
  const auto it = live_.find(id);
  if (it == live_.end()) return;
  const Buffer buffer = it->second;
  live_.erase(it);
  checker_.Remove(buffer.address);
  if (pass_ != nullptr && buffer.pass == passes_) {
    HitCount& count = by_occurrence_[occurrence_];
    ++count.plannable;
    count.plannable_bytes += buffer.size;
    if (buffer.hit) {
      ++count.hits;
      count.hit_bytes += buffer.size;
    }
  }
  if (PlannedArena* arena = pool_.Find(buffer.address)) {
    arena->Free(buffer.address);
    return;
  }
  if (pass_ != nullptr) pass_->OnFree({}, buffer.address);
  upstream_.Free(buffer.address, buffer.size);
}

SimulationResult Simulator::Result() const {
  return {.by_occurrence = by_occurrence_,
          .overlaps = overlaps_,
          .arena_peak = pool_.Stats().arena_peak_bytes,
          .scope = scope_->Stats()};
}

}  // namespace livepool::testing
