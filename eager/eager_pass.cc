#include "livepool/eager/eager_pass.h"

#include <algorithm>
#include <new>
#include <unordered_set>
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
  keys_.reserve(longest + 64);
  slots_.reserve(longest + 64);
}

std::byte* EagerPass::Serve(Bytes size, StreamHandle stream, const void* frame) {
  asked_ = kNone;
  if (stream != stream_ || keys_.size() == ScopePlans::kMaxPassLength) {
    complete_ &= stream != stream_;
    return nullptr;
  }
  const auto position = static_cast<Position>(keys_.size());
  // Alignments are powers of two. What is too large to round is too large for any arena.
  const auto alignment = static_cast<std::uint64_t>(alignment_);
  const auto rounded = static_cast<Bytes>((static_cast<std::uint64_t>(size) + alignment - 1) & ~(alignment - 1));
  keys_.push_back({.size = rounded, .site = static_cast<Site>(entry_ - reinterpret_cast<std::uintptr_t>(frame))});
  if (arena_ != nullptr) arena_->SetClock(position + 1);

  const UnitSet::Place place = cursor_.Next(keys_);
  if (place.unit != nullptr && (place.unit == unit_ || TurnTo(place.unit))) {
    const BoundTable::Entry& entry = table_->entries[place.position];
    if (entry.slot == nullptr) {
      ++planned_upstream_;
    } else if (std::byte* const address = arena_->Serve(entry, /*join=*/false)) {
      ++hits_;
      slots_.push_back(entry.slot);
      return address;
    } else {
      conflict_ = true;
      ++misses_;
    }
  } else {
    if (place.unit == nullptr) matches_ = 0;
    ++misses_;
  }
  slots_.push_back(nullptr);
  asked_ = position;
  return nullptr;
}

// Makes the slots of `unit` ready to be served; false if no arena can be had for them.
bool EagerPass::TurnTo(Unit* unit) {
  if (arena_ == nullptr && !Borrow()) return false;
  CountMain();
  table_ = &unit->BoundTo(*arena_);
  unit_ = unit;
  if (std::find(used_.begin(), used_.end(), unit) == used_.end()) used_.push_back(unit);
  return true;
}

// False if it is too early, if the device forbids it, or if there is no memory. An allocation asks for it, which
// upstream can serve as well, so nothing is thrown.
bool EagerPass::Borrow() {
  if (barred_ || (++matches_ < UnitSet::kContext && !start_.trusted)) return false;
  barred_ = !GetEnv().enabled || (device_calls_.may_serve && !device_calls_.may_serve());
  if (barred_) return false;
  try {
    // Misses hold less than a second arena would. But a device's streams are put in order between passes only, and only
    // if no live slot is in the way.
    const Bytes height = start_.units->height();
    arena_ = &pool_.Borrow(height, /*tolerated=*/device_calls_.begin ? 0 : height);
  } catch (const OutOfMemory&) {
    barred_ = true;
    return false;
  }
  arena_->SetFill(fill_, stream_);
  arena_->SetClock(static_cast<Position>(keys_.size()));
  if (device_calls_.begin) device_calls_.begin(*arena_);
  return true;
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
  try {
    upstream_at_[address] = asked_;
  } catch (const std::bad_alloc&) {
    complete_ = false;
  }
  asked_ = kNone;
}

void EagerPass::OnFree(DeviceId device, const void* address) {
  if (!(device == this->device())) return;
  const auto it = upstream_at_.find(address);
  if (it == upstream_at_.end()) return;  // from before the pass, or from another stream
  try {
    upstream_deaths_.emplace_back(it->second, static_cast<Position>(keys_.size()));
  } catch (const std::bad_alloc&) {
    complete_ = false;  // a deleter may not throw
  }
  upstream_at_.erase(it);
}

void EagerPass::NoteEscapes(PassReport& report) {
  arena_->ApplyRemoteFrees();
  if (arena_->LiveBytes() == 0) return;
  const std::unordered_set<const Slot*> served(slots_.begin(), slots_.end());
  for (Unit* unit : used_) {
    for (const Position position : unit->LivePositions(*arena_, served)) {
      report.escaped.emplace_back(unit->kind_hash(), position);
    }
  }
}

PassRecord EagerPass::MakeRecord() const {
  PassRecord record{.keys = keys_, .deaths = std::vector<Position>(keys_.size(), PassRecord::kAlive)};
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i] != nullptr && slots_[i]->live == 0) record.deaths[i] = slots_[i]->death;
  }
  for (const auto& [position, death] : upstream_deaths_) record.deaths[position] = death;
  return record;
}

EagerPass::~EagerPass() {
  CountMain();
  PassReport report{.record = [this] { return MakeRecord(); },
                    .allocations = keys_.size(),
                    .complete = complete_,
                    .followed = cursor_.FollowedExactly(),
                    .main = main_,
                    .main_hits = main_hits_,
                    .hits = hits_,
                    .misses = misses_,
                    .upstream = planned_upstream_,
                    .divergences = cursor_.divergences()};
  if (arena_ != nullptr) NoteEscapes(report);
  report.as_planned = !conflict_ && upstream_deaths_.empty() && report.escaped.empty();
  pool_.Count(hits_, misses_, planned_upstream_);
  const bool idle = scope_->End(report);
  if (arena_ != nullptr) {
    arena_->SetFill(Fill::kNone, nullptr);
    if (device_calls_.end) device_calls_.end(*arena_);
    pool_.Return(*arena_);
  }
  if (idle) pool_.Trim();
}

}  // namespace livepool
