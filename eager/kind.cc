#include "livepool/eager/kind.h"

#include <algorithm>

namespace livepool {
namespace {

constexpr std::uint32_t kPatienceGrowth = 8;
constexpr std::uint32_t kMaxPatience = 1U << 24;

}  // namespace

Kind::Kind(const PassRecord& first)
    : keys_(std::make_shared<const std::vector<Key>>(first.keys)), hash_(first.Hash()), positions_(first.size()) {
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Position birth = static_cast<Position>(i);
    const bool alive = first.deaths[i] == PassRecord::kAlive;
    positions_[i] = {.death = alive ? birth + 1 : first.deaths[i], .escaping = alive};
  }
}

Kind::Change Kind::Merge(const std::vector<Position>& deaths) {
  ++occurrences_;
  Change change = Change::kNone;
  settled_ = true;
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    Lifetime& learnt = positions_[i];
    if (deaths[i] == PassRecord::kAlive) {
      change = std::max(change, Escaped(static_cast<Position>(i)));
      continue;
    }
    if (!learnt.escaping) {
      if (deaths[i] > learnt.death && Late(learnt, deaths[i])) change = Change::kPack;
      continue;
    }
    learnt.death = std::max(learnt.death, deaths[i]);
    if (++learnt.clean < learnt.clean_needed) {
      settled_ = false;
    } else {
      learnt.escaping = false;
      learnt.clean = 0;
      change = Change::kPack;
    }
  }
  return change;
}

// True if the lifetime has grown.
bool Kind::Late(Lifetime& learnt, Position death) const {
  const bool again = learnt.late_at > 0 && occurrences_ - learnt.late_at <= kLateWindow;
  if (again) learnt.death = std::max(death, learnt.late_death);
  learnt.late_death = death;
  learnt.late_at = occurrences_;
  return again;
}

Kind::Change Kind::Escaped(Position position) {
  Lifetime& learnt = positions_[position];
  learnt.clean = 0;
  if (learnt.escaping) return Change::kNone;
  learnt.escaping = true;
  learnt.clean_needed = std::min(learnt.clean_needed * kPatienceGrowth, kMaxPatience);
  return Change::kFewer;
}

PassRecord Kind::Learnt() const {
  PassRecord record{.keys = *keys_, .deaths = {}};
  record.deaths.reserve(positions_.size());
  for (const Lifetime& learnt : positions_) record.deaths.push_back(learnt.escaping ? PassRecord::kAlive : learnt.death);
  return record;
}

Problem Kind::MakeProblem(Bytes alignment) const {
  Problem problem;
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    if (positions_[i].escaping) continue;
    problem.buffers.push_back(
        {.id = static_cast<std::int64_t>(i),
         .lifetime = {.birth = static_cast<Time>(i), .death = static_cast<Time>(positions_[i].death)},
         .size = (*keys_)[i].size,
         .alignment = alignment});
  }
  return problem;
}

}  // namespace livepool
