// What is known of one kind of pass: all passes that make the same allocations in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "livepool/eager/pass_record.h"
#include "livepool/plan/problem.h"

namespace livepool {

// Learns lifetimes. What outlived an occurrence is *escaping* and not planned until it has died inside enough
// occurrences in a row.
//
// Note [Late once is not late]
// A buffer that dies later than planned costs its slot's next owner a miss, no more. Were each lifetime the longest
// ever seen, the collector's whims would make the plan as large as the sum of all buffers, in time. So a lifetime grows
// only when the buffer is late twice within kLateWindow occurrences.
//
// Note [Escapes come back]
// A planned buffer that outlives its pass blocks the arena for the next pass. A program may do that now and then (it
// keeps each tenth result), so for each such surprise a buffer must die in time eight times as often as before,
// until it is planned again. Else the program would block one arena after the other.
class Kind {
 public:
  explicit Kind(const PassRecord& first);

  const std::vector<Key>& keys() const { return *keys_; }
  std::uint64_t hash() const { return hash_; }

  static constexpr std::uint32_t kLateWindow = 4;

  // What has to change in the plan.
  enum class Change {
    kNone,
    kFewer,  // a planned buffer escapes now: its slot may not be served any more
    kPack,   // buffers live longer or are to be planned: they need other places
  };
  // Takes in another occurrence, whose keys are equal.
  Change Merge(const std::vector<Position>& deaths);
  // Another occurrence went as planned.
  void MergeAsPlanned() { ++occurrences_; }
  // The buffer at `position`, served from its slot, outlived a pass.
  Change Escaped(Position position);
  // False while an escaping buffer has died in time in the last occurrences: the next one must be looked at.
  bool settled() const { return settled_; }
  bool escaping(Position position) const { return positions_[position].escaping; }

  // What is known by now, as one pass: a Kind made from it plans the same.
  PassRecord Learnt() const;
  // The packing instance of what does not escape; a buffer's id is its position. Sizes are aligned already.
  Problem MakeProblem(Bytes alignment) const;

 private:
  struct Lifetime {
    Position death = 0;
    Position late_death = 0;    // when it was late last
    std::uint32_t late_at = 0;  // the occurrence in which that was; 0: never
    bool escaping = false;
    std::uint32_t clean = 0;         // occurrences in a row in which it died in time
    std::uint32_t clean_needed = 2;  // until it is planned
  };

  bool Late(Lifetime& learnt, Position death) const;

  std::shared_ptr<const std::vector<Key>> keys_;  // shared with the copies that a plan is made from
  std::uint64_t hash_;
  std::vector<Lifetime> positions_;
  std::uint32_t occurrences_ = 1;
  bool settled_ = true;
};

}  // namespace livepool
