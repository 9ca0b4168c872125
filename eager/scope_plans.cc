#include "livepool/eager/scope_plans.h"

#include <algorithm>
#include <iostream>
#include <iterator>
#include <optional>
#include <utility>

#include "livepool/base/env.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

constexpr std::size_t kMaxSeen = 256;

}  // namespace

void ScopeStats::Add(const ScopeStats& other) {
  passes += other.passes;
  hits += other.hits;
  misses += other.misses;
  upstream += other.upstream;
  divergences += other.divergences;
  kinds += other.kinds;
  units += other.units;
  if (other.arena_bytes > arena_bytes) {
    arena_bytes = other.arena_bytes;
    lower_bound_bytes = other.lower_bound_bytes;
  }
  recorded_peak_bytes = std::max(recorded_peak_bytes, other.recorded_peak_bytes);
}

ScopePlans::ScopePlans(std::string name, Bytes alignment, Submit submit, std::function<bool()> stop)
    : name_(std::move(name)),
      alignment_(alignment),
      submit_(std::move(submit)),
      stop_(std::move(stop)),
      units_(std::make_shared<const UnitSet>(std::vector<std::shared_ptr<Unit>>{})) {}

void ScopePlans::Adopt(const std::vector<PassRecord>& kinds) {
  for (const PassRecord& record : kinds) {
    auto known = std::make_unique<Known>(Known{.kind = Kind(record), .unit = nullptr});
    known->unit = Unit::Make(known->kind, alignment_, stop_);
    known->wanted = Kind::Change::kNone;
    const std::lock_guard lock(mutex_);
    if (FindLocked(known->kind.hash()) != nullptr) continue;
    known_.push_back(std::move(known));
    ++units_version_;
    poor_passes_ = 0;  // it has served before
  }
  Publish();
}

std::vector<PassRecord> ScopePlans::Learnt() const {
  const std::lock_guard lock(mutex_);
  std::vector<PassRecord> kinds;
  for (const std::unique_ptr<Known>& known : known_) kinds.push_back(known->kind.Learnt());
  return kinds;
}

ScopePlans::Start ScopePlans::Begin() const {
  const std::lock_guard lock(mutex_);
  return {.units = units_, .trusted = poor_passes_ < kPoorPasses};
}

bool ScopePlans::End(const PassReport& report) {
  bool idle = false;
  bool publish = false;
  std::vector<std::uint64_t> due;
  {
    const std::lock_guard lock(mutex_);
    ++stats_.passes;
    stats_.hits += report.hits;
    stats_.misses += report.misses;
    stats_.upstream += report.upstream;
    stats_.divergences += report.divergences;
    const std::uint64_t version = units_version_;
    const bool trusted = poor_passes_ < kPoorPasses;
    if (report.complete) LearnLocked(report);
    JudgeLocked(report);
    DropLocked();
    publish = units_version_ != version;
    idle = publish || (trusted && poor_passes_ >= kPoorPasses);
    for (const std::unique_ptr<Known>& known : known_) {
      if (!DueLocked(*known)) continue;
      known->planning = true;
      due.push_back(known->kind.hash());
    }
  }
  if (publish) Publish();
  for (const std::uint64_t hash : due) {
    if (submit_([self = shared_from_this(), hash] { self->MakePlan(hash); })) continue;
    const std::lock_guard lock(mutex_);  // asked for again when the next pass ends
    if (Known* known = FindLocked(hash)) known->planning = false;
  }
  return idle;
}

ScopePlans::Known* ScopePlans::FindLocked(std::uint64_t hash) {
  for (const std::unique_ptr<Known>& known : known_) {
    if (known->kind.hash() == hash) return known.get();
  }
  return nullptr;
}

void ScopePlans::WantLocked(Known& known, Kind::Change change) { known.wanted = std::max(known.wanted, change); }

bool ScopePlans::DueLocked(const Known& known) const {
  if (known.planning || known.wanted == Kind::Change::kNone) return false;
  return known.wanted == Kind::Change::kFewer || static_cast<std::uint64_t>(stats_.passes) >= known.pack_after;
}

void ScopePlans::LearnLocked(const PassReport& report) {
  for (const auto& [hash, position] : report.escaped) {
    Known* known = FindLocked(hash);
    if (known == nullptr || position >= known->kind.keys().size()) continue;  // dropped meanwhile
    WantLocked(*known, known->kind.Escaped(position));
  }
  if (report.allocations == 0) return;
  const auto now = static_cast<std::uint64_t>(stats_.passes);
  const auto come_again = [&](Known& known) {
    known.last_used = now;
    known.proven = true;
    unproven_ = 0;
  };
  if (report.followed != nullptr) {
    Known* known = FindLocked(report.followed->kind_hash());
    if (known != nullptr && report.as_planned && known->kind.settled()) {
      come_again(*known);
      known->kind.MergeAsPlanned();
      return;
    }
  }
  const PassRecord record = report.record();
  const std::uint64_t hash = record.Hash();
  Known* known = FindLocked(hash);
  if (known == nullptr) {
    stats_.recorded_peak_bytes = std::max(stats_.recorded_peak_bytes, record.LivePeak());
    const std::int64_t requests = report.hits + report.misses + report.upstream;
    AddKindLocked(record, hash, report.hits * 2 >= requests);
  } else if (known->kind.keys() == record.keys) {  // else only the hashes are equal, by chance
    come_again(*known);
    WantLocked(*known, known->kind.Merge(record.deaths));
  }
}

void ScopePlans::AddKindLocked(const PassRecord& record, std::uint64_t hash, bool served_well) {
  if ((served_well || unproven_ >= kUnproven) && !SeenBeforeLocked(hash)) return;
  ++unproven_;
  known_.push_back(std::make_unique<Known>(Known{.kind = Kind(record), .unit = nullptr}));
  known_.back()->made = known_.back()->last_used = static_cast<std::uint64_t>(stats_.passes);
}

bool ScopePlans::SeenBeforeLocked(std::uint64_t hash) {
  const auto it = std::find(seen_.begin(), seen_.end(), hash);
  if (it != seen_.end()) {
    seen_.erase(it);
    return true;
  }
  seen_.push_back(hash);
  if (seen_.size() > kMaxSeen) seen_.pop_front();
  return false;
}

// How well the pass was served, by all units and by the one that served most.
void ScopePlans::JudgeLocked(const PassReport& report) {
  if (!report.complete) return;
  const std::int64_t requests = report.hits + report.misses + report.upstream;
  poor_passes_ = report.hits * 4 < requests ? poor_passes_ + 1 : 0;
  Known* known = report.main == nullptr ? nullptr : FindLocked(report.main->kind_hash());
  if (known == nullptr) return;
  known->last_used = static_cast<std::uint64_t>(stats_.passes);
  report.main->set_last_used(known->last_used);
  const bool poor = report.main_hits * std::uint64_t{4} < report.main->planned();
  known->poor_passes = poor ? known->poor_passes + 1 : 0;
  known->proven |= !poor;
}

void ScopePlans::DropLocked() {
  const auto now = static_cast<std::uint64_t>(stats_.passes);
  std::size_t positions = 0;
  for (const std::unique_ptr<Known>& known : known_) positions += known->kind.keys().size();
  const auto oldest = [&] {
    return std::min_element(known_.begin(), known_.end(),
                            [](const auto& a, const auto& b) { return a->last_used < b->last_used; });
  };
  const auto drop = [&](auto known) {
    positions -= (*known)->kind.keys().size();
    if ((*known)->unit != nullptr) ++units_version_;
    return known_.erase(known);
  };
  for (auto known = known_.begin(); known != known_.end();) {
    const bool failed = (*known)->poor_passes >= kPoorPasses || (!(*known)->proven && now - (*known)->made >= kTrial);
    known = failed ? drop(known) : std::next(known);
  }
  while (known_.size() > kMaxKinds || (known_.size() > 1 && positions > kMaxPositions)) drop(oldest());
}

// Run by the planning thread: what takes long is done on a copy, without the lock.
void ScopePlans::MakePlan(std::uint64_t hash) {
  std::optional<Kind> kind;
  std::shared_ptr<Unit> unit;
  Kind::Change wanted = Kind::Change::kNone;
  {
    const std::lock_guard lock(mutex_);
    Known* known = FindLocked(hash);
    if (known == nullptr) return;  // dropped meanwhile
    wanted = std::exchange(known->wanted, Kind::Change::kNone);
    kind = known->kind;
    unit = known->unit;
    if (wanted == Kind::Change::kPack) {
      known->pack_pause = std::min(known->pack_pause * 2, kPackPause);
      known->pack_after = static_cast<std::uint64_t>(stats_.passes) + known->pack_pause;
    }
  }
  bool refused = false;
  try {
    if (wanted == Kind::Change::kPack) {
      unit = Unit::Make(*kind, alignment_, stop_);
    } else if (unit != nullptr) {
      unit = unit->WithoutEscapes(*kind);
    }
  } catch (const Error& error) {
    // A plan that its judge refuses is not served, and the kind is forgotten.
    refused = true;
    if (GetEnv().log != LogLevel::kOff) std::cerr << "livepool: scope '" << name_ << "': " << error.what() << '\n';
  }
  {
    const std::lock_guard lock(mutex_);
    Known* known = FindLocked(hash);
    if (known == nullptr) return;
    if (unit != nullptr) unit->set_last_used(known->last_used);
    known->unit.swap(unit);
    known->planning = false;
    if (refused) std::erase_if(known_, [&](const std::unique_ptr<Known>& each) { return each.get() == known; });
    ++units_version_;
  }
  Publish();
}

// Building the index takes long, so it is done without the lock, and again if something has changed meanwhile.
void ScopePlans::Publish() {
  for (bool current = false; !current;) {
    std::uint64_t version = 0;
    std::vector<std::shared_ptr<Unit>> units;
    {
      const std::lock_guard lock(mutex_);
      version = units_version_;
      for (const std::unique_ptr<Known>& known : known_) {
        if (known->unit != nullptr) units.push_back(known->unit);
      }
    }
    auto set = std::make_shared<const UnitSet>(std::move(units));
    const std::lock_guard lock(mutex_);
    current = version == units_version_;
    if (current) units_.swap(set);
  }
}

ScopeStats ScopePlans::Stats() const {
  const std::lock_guard lock(mutex_);
  ScopeStats stats = stats_;
  stats.kinds = static_cast<std::int64_t>(known_.size());
  for (const std::unique_ptr<Known>& known : known_) {
    if (known->unit == nullptr) continue;
    stats.Add({.units = 1, .arena_bytes = known->unit->height(), .lower_bound_bytes = known->unit->lower_bound()});
  }
  return stats;
}

}  // namespace livepool
