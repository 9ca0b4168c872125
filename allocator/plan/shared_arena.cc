#include "livepool/plan/shared_arena.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "check_problem.h"
#include "livepool/base/error.h"
#include "livepool/plan/lower_bound.h"

namespace livepool {
namespace {

// So many passes have a turn at being the first; each costs a plan of all passes.
constexpr std::size_t kMaxFirst = 4;

// One shared buffer, and where it is in each pass that has it.
struct Shared {
  std::vector<std::pair<std::size_t, std::size_t>> places;  // pass, index in its problem; by pass
  std::optional<Bytes> offset;                              // once it is known
};

class Joint {
 public:
  explicit Joint(const SharedArena& arena) : passes_(arena.passes) {
    std::map<std::int64_t, Shared> by_id;
    for (const std::int64_t id : arena.shared) by_id[id];
    for (std::size_t pass = 0; pass < passes_.size(); ++pass) {
      CheckProblem(passes_[pass]);
      for (std::size_t i = 0; i < passes_[pass].buffers.size(); ++i) {
        const auto found = by_id.find(passes_[pass].buffers[i].id);
        if (found != by_id.end()) found->second.places.emplace_back(pass, i);
      }
    }
    for (auto& [id, shared] : by_id) {
      if (shared.places.empty()) throw InvalidInput("buffer " + std::to_string(id) + ": it is shared, but in no pass");
      CheckAlike(shared);
      shared.offset = First(shared).fixed_offset;
      shared_.push_back(std::move(shared));
    }
  }

  // Gives each shared buffer, largest first, the lowest place that is free in all its passes.
  void PutSharedAtTheBottom() {
    std::vector<Shared*> by_size;
    for (Shared& shared : shared_) {
      if (!shared.offset) by_size.push_back(&shared);
    }
    std::stable_sort(by_size.begin(), by_size.end(),
                     [&](const Shared* a, const Shared* b) { return First(*a).size > First(*b).size; });
    for (Shared* shared : by_size) {
      Bytes offset = 0;
      while (const std::optional<Bytes> end = EndOfConflict(*shared, offset)) {
        offset = AlignUp(*end, First(*shared).alignment);
      }
      SetOffset(*shared, offset);
    }
  }

  // False if what one pass has chosen cannot be in another.
  bool TakeSharedFrom(std::size_t pass, const Plan& plan) {
    for (Shared& shared : shared_) {
      if (shared.offset) continue;
      for (const auto& [at, index] : shared.places) {
        if (at != pass || shared.offset) continue;
        if (EndOfConflict(shared, plan.offsets[index])) return false;
        SetOffset(shared, plan.offsets[index]);
      }
    }
    return true;
  }

  // The pass, with shared buffers fixed where they lie.
  const Problem& pass(std::size_t pass) const { return passes_[pass]; }

 private:
  const Buffer& First(const Shared& shared) const {
    const auto& [pass, index] = shared.places.front();
    return passes_[pass].buffers[index];
  }

  void CheckAlike(const Shared& shared) const {
    const Buffer& first = First(shared);
    for (const auto& [pass, index] : shared.places) {
      const Buffer& other = passes_[pass].buffers[index];
      if (other.size == first.size && other.alignment == first.alignment && other.fixed_offset == first.fixed_offset)
        continue;
      throw InvalidInput("buffer " + std::to_string(first.id) + ": it is shared, but pass " + std::to_string(pass) +
                         " has another size, alignment or fixed offset for it than pass " +
                         std::to_string(shared.places.front().first));
    }
  }

  void SetOffset(Shared& shared, Bytes offset) {
    shared.offset = offset;
    for (const auto& [pass, index] : shared.places) passes_[pass].buffers[index].fixed_offset = offset;
  }

  // If the shared buffer cannot lie at `offset`: the end of a fixed one that is in its way.
  std::optional<Bytes> EndOfConflict(const Shared& shared, Bytes offset) const {
    for (const auto& [pass, index] : shared.places) {
      const Buffer& buffer = passes_[pass].buffers[index];
      for (const Buffer& other : passes_[pass].buffers) {
        if (!other.fixed_offset || !other.lifetime.Overlaps(buffer.lifetime)) continue;
        const Bytes end = *other.fixed_offset + other.size;
        if (offset < end && *other.fixed_offset < offset + buffer.size) return end;
      }
    }
    return std::nullopt;
  }

  std::vector<Problem> passes_;
  std::vector<Shared> shared_;  // by id
};

// The passes, the one with the most live bytes first.
std::vector<std::size_t> FullestFirst(const std::vector<Problem>& passes) {
  std::vector<Bytes> bounds;
  for (const Problem& pass : passes) bounds.push_back(LowerBound(pass));
  std::vector<std::size_t> order(passes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return bounds[a] > bounds[b]; });
  return order;
}

// Nothing if the choices of two passes exclude each other.
std::optional<SharedArenaPlan> PlanPasses(Joint joint, const std::vector<std::size_t>& order,
                                          const PlannerOptions& options) {
  SharedArenaPlan result;
  result.plans.resize(order.size());
  for (const std::size_t pass : order) {
    Plan& plan = result.plans[pass];
    plan = MakePlan(joint.pass(pass), options);
    // What was proved with shared buffers fixed holds for these offsets only.
    plan.proved_bound = 0;
    result.height = std::max(result.height, plan.height);
    if (!joint.TakeSharedFrom(pass, plan)) return std::nullopt;
  }
  return result;
}

}  // namespace

SharedArenaPlan MakeSharedArenaPlan(const SharedArena& arena, const PlannerOptions& options) {
  const Joint joint(arena);
  std::vector<std::size_t> order = FullestFirst(arena.passes);
  Bytes bound = 0;
  for (const Problem& pass : arena.passes) {
    const Plan alone = MakePlan(pass, options);
    bound = std::max({bound, alone.lower_bound, alone.proved_bound});
  }
  Joint from_below = joint;
  from_below.PutSharedAtTheBottom();
  SharedArenaPlan best = *PlanPasses(std::move(from_below), order, options);
  // Whoever is planned first chooses for the others.
  for (std::size_t first = 0; first < std::min(order.size(), kMaxFirst) && best.height > bound; ++first) {
    std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first),
                order.begin() + static_cast<std::ptrdiff_t>(first) + 1);
    const std::optional<SharedArenaPlan> other = PlanPasses(joint, order, options);
    if (other && other->height < best.height) best = *other;
  }
  best.lower_bound = bound;
  return best;
}

}  // namespace livepool
