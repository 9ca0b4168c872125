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

bool RunNow(const std::function<void()>& job) {
  job();
  return true;
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

HitCount SimulationResult::SecondHalf() const {
  HitCount sum;
  for (std::size_t i = by_pass.size() / 2; i < by_pass.size(); ++i) sum += by_pass[i];
  return sum;
}

Simulator::Simulator(Bytes alignment, Passes passes)
    : alignment_(alignment),
      pool_(NewPool(alignment)),
      scope_(passes == Passes::kFound ? nullptr : std::make_shared<ScopePlans>("simulated", alignment, &RunNow)),
      found_(passes == Passes::kScoped
                 ? nullptr
                 : std::make_unique<FoundPasses>("simulated", pool_, nullptr, kEntry, livepool::Fill::kNone, &RunNow)),
      server_(found_.get()),
      sink_(found_.get()) {}

void Simulator::Run(const EventStream& events) {
  for (const StreamEvent& event : events) {
    switch (event.kind) {
      case StreamEvent::Kind::kBegin:
        ++passes_;
        occurrence_ = occurrences_[event.id]++;
        if (by_occurrence_.size() <= occurrence_) by_occurrence_.resize(occurrence_ + 1);
        by_pass_.emplace_back();
        in_pass_ = true;
        if (scope_ == nullptr) break;
        scoped_ = std::make_unique<EagerPass>(scope_, pool_, nullptr, kEntry, livepool::Fill::kNone);
        server_ = scoped_.get();
        sink_ = scoped_.get();
        break;
      case StreamEvent::Kind::kThrow:
        if (scoped_ != nullptr) scoped_->Abandon();
        [[fallthrough]];
      case StreamEvent::Kind::kEnd:
        in_pass_ = false;
        if (scope_ == nullptr) break;
        scoped_.reset();
        server_ = nullptr;
        sink_ = nullptr;
        break;
      case StreamEvent::Kind::kAlloc:
        Allocate(event);
        break;
      case StreamEvent::Kind::kFree:
        Free(event);
        break;
    }
  }
}

// What allocate() of the allocators in allocator/torch does.
void Simulator::Allocate(const StreamEvent& event) {
  Buffer buffer{.size = AlignUp(event.size, alignment_)};
  if (in_pass_) buffer.pass = passes_;
  if (server_ != nullptr) buffer.address = server_->Serve(event.size, nullptr, kEntry - event.site);
  buffer.hit = buffer.address != nullptr;
  if (!buffer.hit) {
    buffer.address = upstream_.Allocate(buffer.size);
    if (sink_ != nullptr) sink_->OnAlloc({}, buffer.address, event.size, nullptr);
  }
  if (!checker_.Add(buffer.address, buffer.size)) ++overlaps_;
  live_[event.id] = buffer;
}

void Simulator::Free(const StreamEvent& event) {
  const auto it = live_.find(event.id);
  if (it == live_.end()) return;
  const Buffer buffer = it->second;
  live_.erase(it);
  checker_.Remove(buffer.address);
  if (in_pass_ && buffer.pass == passes_) {
    const HitCount one{.hits = buffer.hit ? 1 : 0,
                       .plannable = 1,
                       .hit_bytes = buffer.hit ? buffer.size : 0,
                       .plannable_bytes = buffer.size};
    by_occurrence_[occurrence_] += one;
    by_pass_.back() += one;
  }
  if (found_ != nullptr) found_->OnAnyFree(buffer.address, kEntry - event.site);
  if (PlannedArena* arena = pool_.Find(buffer.address)) {
    arena->Free(buffer.address);
    return;
  }
  if (sink_ != nullptr) sink_->OnFree({}, buffer.address);
  upstream_.Free(buffer.address, buffer.size);
}

SimulationResult Simulator::Result() const {
  return {.by_occurrence = by_occurrence_,
          .by_pass = by_pass_,
          .overlaps = overlaps_,
          .arena_peak = pool_.Stats().arena_peak_bytes,
          .scope = scope_ == nullptr ? found_->counts()->Read().passes : scope_->Stats()};
}

}  // namespace livepool::testing
