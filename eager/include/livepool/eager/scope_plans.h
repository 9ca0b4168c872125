// What a scope has learnt from its passes: the kinds of pass, and their plans.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "livepool/eager/kind.h"
#include "livepool/eager/unit_set.h"

namespace livepool {

// Counts since the scope was made.
struct ScopeStats {
  std::int64_t passes = 0;
  std::int64_t hits = 0;          // allocations served from a slot
  std::int64_t misses = 0;        // served upstream, although a plan said otherwise or none knew of it
  std::int64_t upstream = 0;      // served upstream as planned: what escapes
  std::int64_t divergences = 0;   // allocations that were not the one that was due
  std::int64_t kinds = 0;         // kinds of pass that are known now
  std::int64_t units = 0;         // of these, with a plan
  Bytes arena_bytes = 0;          // the largest plan: what the scope needs of an arena
  Bytes lower_bound_bytes = 0;    // of that plan: no packing is smaller
  Bytes recorded_peak_bytes = 0;  // the most that the buffers of one recorded pass held at once

  // Of both: counts are summed, of sizes the larger ones are taken.
  void Add(const ScopeStats& other);
  friend bool operator==(const ScopeStats&, const ScopeStats&) = default;
};

// One pass, as it ended.
struct PassReport {
  std::function<PassRecord()> record;  // makes the record; asked only where there is something to learn
  std::size_t allocations = 0;         // in the record
  bool complete = true;                // false: ended by an exception, or too long: nothing is learnt from it
  Unit* followed = nullptr;            // the pass was exactly of this kind
  bool as_planned = false;             // with `followed`: no slot was in use when it was due, nothing died early
  Unit* main = nullptr;                // the unit that served most
  std::uint32_t main_hits = 0;         // allocations that it served
  std::vector<std::pair<std::uint64_t, Position>> escaped;  // slots in use at the end: (hash of the kind, position)
  std::int64_t hits = 0, misses = 0, upstream = 0, divergences = 0;
};

// Thread-safe: passes of several threads, and the thread that plans, use it at once.
//
// Note [When a kind gets a plan]
// At its first pass, as a rule. But a pass that the present plans served well (half of it or more) is most likely one
// of theirs that has diverged, and a program of which kUnproven kinds were planned since one came again repeats
// little: then a kind gets its plan when it comes the second time. A unit goes if it serves less than a quarter of its
// plan in kPoorPasses passes in a row, if its kind has not come again for kTrial passes, or if there is too much and
// it was not used for longest. A plan is packed anew at most after 2, 4, 8, ... kPackPause passes.
//
// Note [No arena on suspicion]
// In a program that does not repeat, a size fits now and then by chance. While no pass of the last kPoorPasses was
// served well, an arena is borrowed only after kContext allocations in a row have matched.
class ScopePlans : public std::enable_shared_from_this<ScopePlans> {
 public:
  // Runs a job some time later, or at once; false: it will not run.
  using Submit = std::function<bool(std::function<void()>)>;

  static constexpr std::size_t kMaxKinds = 64;
  static constexpr std::size_t kMaxPassLength = 1 << 16;  // allocations; of longer passes nothing is learnt
  static constexpr std::size_t kMaxPositions = 1 << 18;   // over all kinds
  static constexpr std::uint32_t kUnproven = 8;
  static constexpr std::uint64_t kTrial = 256;
  static constexpr std::uint64_t kPackPause = 64;
  static constexpr std::uint32_t kPoorPasses = 8;

  // `alignment`: of the arena, bytes. `stop` ends the making of a plan early.
  ScopePlans(std::string name, Bytes alignment, Submit submit, std::function<bool()> stop = {});

  const std::string& name() const { return name_; }
  Bytes alignment() const { return alignment_; }

  // Takes in what an earlier process has learnt, and plans it before it returns, so that the first pass is served.
  // For a new scope; what it knows already stays as it is. Throws InvalidPlan.
  void Adopt(const std::vector<PassRecord>& kinds);
  // What is known now, for a later process.
  std::vector<PassRecord> Learnt() const;

  struct Start {
    std::shared_ptr<const UnitSet> units;  // never null
    bool trusted = false;                  // a single match is enough to borrow an arena
  };
  // The plans for a pass that begins now.
  Start Begin() const;
  // A pass has ended. True if memory of arenas may be idle from now on: plans were dropped, or are not trusted.
  bool End(const PassReport& report);
  ScopeStats Stats() const;

 private:
  struct Known {
    Kind kind;
    std::shared_ptr<Unit> unit;  // null: not made yet, or nothing to plan
    std::uint64_t made = 0;      // numbers of passes
    std::uint64_t last_used = 0;
    std::uint64_t pack_after = 0;  // not to be packed before
    std::uint64_t pack_pause = 1;
    std::uint32_t poor_passes = 0;  // in a row
    bool proven = false;            // has come again
    bool planning = false;
    Kind::Change wanted = Kind::Change::kPack;  // since the last plan was begun
  };

  Known* FindLocked(std::uint64_t hash);
  void LearnLocked(const PassReport& report);
  void AddKindLocked(const PassRecord& record, std::uint64_t hash, bool served_well);
  bool SeenBeforeLocked(std::uint64_t hash);
  void JudgeLocked(const PassReport& report);
  void DropLocked();
  void WantLocked(Known& known, Kind::Change change);
  bool DueLocked(const Known& known) const;
  void MakePlan(std::uint64_t hash);
  void Publish();

  const std::string name_;
  const Bytes alignment_;
  const Submit submit_;
  const std::function<bool()> stop_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Known>> known_;
  std::shared_ptr<const UnitSet> units_;
  std::uint64_t units_version_ = 0;          // counts the changes of known_[i]->unit
  std::deque<std::uint64_t> seen_;           // hashes of passes that got no plan
  std::uint32_t unproven_ = 0;               // kinds that were planned since one came again
  std::uint32_t poor_passes_ = kPoorPasses;  // in a row; at first nothing is trusted
  ScopeStats stats_;
};

}  // namespace livepool
