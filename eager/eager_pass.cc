#include "livepool/eager/eager_pass.h"

#include <algorithm>
#include <utility>

#include "livepool/base/error.h"

namespace livepool {

EagerPass::EagerPass(std::shared_ptr<ScopePlans> scope, ArenaPool& pool, StreamHandle stream, const void* entry,
                     Fill fill, PassDevice device)
    : Server(pool.device()),
      scope_(std::move(scope)),
      start_(scope_->Begin()),
      pool_(pool),
      stream_(stream),
      entry_(reinterpret_cast<std::uintptr_t>(entry)),
      alignment_(scope_->alignment()),
      fill_(fill),
      device_calls_(std::move(device)),
      cursor_(*start_.units) {
  std::size_t longest = 0;
  for (const std::shared_ptr<Unit>& unit : start_.units->units()) longest = std::max(longest, unit->keys().size());
  record_.keys.reserve(longest + 64);
  record_.deaths.reserve(longest + 64);
  slots_.reserve(longest + 64);
}

std::byte* EagerPass::Serve(Bytes size, StreamHandle stream, const void* frame) {
  asked_ = kNone;
  if (stream != stream_ || record_.size() == ScopePlans::kMaxPassLength) {
    complete_ &= stream != stream_;
    return nullptr;
  }
  const auto position = static_cast<Position>(record_.size());
  // Alignments are powers of two. What is too large to round is too large for any arena.
  const Bytes rounded =
      static_cast<Bytes>((static_cast<std::uint64_t>(size) + static_cast<std::uint64_t>(alignment_) - 1) &
                         ~(static_cast<std::uint64_t>(alignment_) - 1));
  record_.keys.push_back(
      {.size = rounded, .site = static_cast<Site>(entry_ - reinterpret_cast<std::uintptr_t>(frame))});
  record_.deaths.push_back(PassRecord::kAlive);
  slots_.push_back(nullptr);
  if (arena_ != nullptr) arena_->SetClock(position + 1);

  const UnitSet::Place place = cursor_.Next(record_.keys);
  if (place.unit != nullptr) {
    if (std::byte* address = ServeFrom(place)) return address;
  } else {
    ++misses_;
    matches_ = 0;
  }
  asked_ = position;
  return nullptr;
}

std::byte* EagerPass::ServeFrom(const UnitSet::Place& place) {
  if (place.unit != unit_ && !TurnTo(place.unit)) {
    ++misses_;
    return nullptr;
  }
  const BoundTable::Entry& entry = table_->entries[place.position];
  if (entry.slot == nullptr) {
    ++planned_upstream_;
    return nullptr;
  }
  std::byte* address = arena_->Serve(entry, /*join=*/false);
  if (address == nullptr) {
    conflict_ = true;
    ++misses_;
    return nullptr;
  }
  ++hits_;
  slots_.back() = entry.slot;
  return address;
}

// Makes the slots of `unit` ready to be served; false if no arena can be had for them. Called by an allocation, which
// upstream can serve as well, so nothing is thrown.
bool EagerPass::TurnTo(Unit* unit) {
  if (barred_) return false;
  try {
    if (arena_ == nullptr) {
      if (++matches_ < UnitSet::kContext && !start_.trusted) return false;
      if (!GetEnv().enabled || (device_calls_.may_serve && !device_calls_.may_serve())) {
        barred_ = true;
        return false;
      }
      PlannedArena& borrowed = pool_.Borrow(unit->height());
      if (device_calls_.begin) device_calls_.begin(borrowed);
      arena_ = &borrowed;
      arena_->SetFill(fill_, stream_);
      arena_->SetClock(static_cast<Position>(record_.size()));
    } else {
      arena_->arena().Grow(unit->height());
    }
    const BoundTable& table = unit->BoundTo(*arena_);
    CountMain();
    table_ = &table;
    unit_ = unit;
    if (std::find(used_.begin(), used_.end(), unit) == used_.end()) used_.push_back(unit);
    return true;
  } catch (const OutOfMemory&) {
    barred_ = arena_ == nullptr;
    return false;
  }
}

void EagerPass::CountMain() {
  const auto hits = static_cast<std::uint32_t>(hits_ - hits_at_turn_);
  if (unit_ != nullptr && hits >= main_hits_) {
    main_ = unit_;
    main_hits_ = hits;
  }
  hits_at_turn_ = hits_;
}

void EagerPass::OnAlloc(DeviceId device, const void* address, Bytes, StreamHandle) {
  if (asked_ == kNone || !(device == this->device())) return;
  upstream_at_[address] = asked_;
  asked_ = kNone;
}

void EagerPass::OnFree(DeviceId device, const void* address) {
  if (!(device == this->device())) return;
  const auto it = upstream_at_.find(address);
  if (it == upstream_at_.end()) return;  // from before the pass, or from another stream
  record_.deaths[it->second] = static_cast<Position>(record_.size());
  died_early_ = true;
  upstream_at_.erase(it);
}

// Frees of slots are known by the slots.
void EagerPass::Resolve(PassReport& report) {
  arena_->ApplyRemoteFrees();
  if (arena_->LiveBytes() > 0) {
    for (Unit* unit : used_) {
      for (const Position position : unit->LivePositions(*arena_))
        report.escaped.emplace_back(unit->kind_hash(), position);
    }
  }
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i] != nullptr && slots_[i]->live == 0) report.record.deaths[i] = slots_[i]->death;
  }
}

EagerPass::~EagerPass() {
  CountMain();
  PassReport report{.record = std::move(record_),
                    .complete = complete_,
                    .followed = cursor_.FollowedExactly(),
                    .main = main_,
                    .main_hits = main_hits_,
                    .hits = hits_,
                    .misses = misses_,
                    .upstream = planned_upstream_,
                    .divergences = cursor_.divergences()};
  if (arena_ != nullptr) {
    Resolve(report);
    arena_->SetFill(Fill::kNone, nullptr);
    if (device_calls_.end) device_calls_.end(*arena_);
    pool_.Return(*arena_);
  }
  report.as_planned = !conflict_ && !died_early_ && report.escaped.empty();
  pool_.Count(hits_, misses_, planned_upstream_);
  if (scope_->End(report)) pool_.Trim();
}

}  // namespace livepool
