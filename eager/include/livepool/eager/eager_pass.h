// One pass of plain eager code: serves what the scope's plans foresee, and records it all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "livepool/base/env.h"
#include "livepool/eager/cursor.h"
#include "livepool/eager/scope_plans.h"
#include "livepool/pool/arena_pool.h"
#include "livepool/pool/server.h"
#include "livepool/pool/trace_sink.h"

namespace livepool {

// What a pass needs of its device beside the pool.
struct PassDevice {
  // False while no slot may be served (the caller's own CUDA graph capture); asked before an arena is borrowed.
  std::function<bool()> may_serve;
  // An arena has been borrowed; it is about to be given back.
  std::function<void(PlannedArena&)> begin;
  std::function<void(PlannedArena&)> end;
};

// From construction to destruction, used by one thread. The allocator asks Serve for each allocation, and reports
// those that went upstream to the TraceSink; so the pass is the thread's Server and its TraceSink at once.
//
// An arena for the largest plan is borrowed when the first one fits, so a pass that no plan fits holds none. Whatever
// the program does, an allocation that is not served is a miss, and goes upstream.
class EagerPass final : public Server, public TraceSink {
 public:
  // `entry`: an address in the stack frame that entered the scope; sites are relative to it. `pool` lives for ever.
  EagerPass(std::shared_ptr<ScopePlans> scope, ArenaPool& pool, StreamHandle stream, const void* entry, Fill fill,
            PassDevice device = {});
  ~EagerPass() override;
  EagerPass(const EagerPass&) = delete;
  EagerPass& operator=(const EagerPass&) = delete;

  std::byte* Serve(Bytes size, StreamHandle stream, const void* frame) override;
  PlannedArena* arena() const override { return arena_; }
  Bytes height() const override { return unit_ == nullptr ? 0 : unit_->height(); }
  void OnAlloc(DeviceId device, const void* address, Bytes size, StreamHandle stream) override;
  void OnFree(DeviceId device, const void* address) override;

  // The pass ends by an exception: its lifetimes are no rule, and nothing is learnt from them.
  void Abandon() { complete_ = false; }

  const ScopePlans& scope() const { return *scope_; }

 private:
  bool TurnTo(Unit* unit);
  bool Borrow();
  void CountMain();
  void NoteEscapes(PassReport& report);
  PassRecord MakeRecord() const;

  static constexpr Position kNone = PassRecord::kAlive;

  const std::shared_ptr<ScopePlans> scope_;
  const ScopePlans::Start start_;
  ArenaPool& pool_;
  const StreamHandle stream_;
  const std::uintptr_t entry_;
  const Bytes alignment_;
  const Fill fill_;
  const PassDevice device_calls_;
  Cursor cursor_;

  PlannedArena* arena_ = nullptr;
  Unit* unit_ = nullptr;               // whose slots are served now
  const BoundTable* table_ = nullptr;  // of unit_, on arena_
  std::vector<Unit*> used_;            // units that had slots served
  bool barred_ = false;                // no arena is to be had
  std::uint32_t matches_ = 0;          // in a row, while there is no arena

  // What was recorded, by position. The slots know when what they served has died.
  std::vector<Key> keys_;
  std::vector<const Slot*> slots_;                              // null: upstream
  std::vector<std::pair<Position, Position>> upstream_deaths_;  // position, death
  std::unordered_map<const void*, Position> upstream_at_;       // what upstream serves, while it is alive
  Position asked_ = kNone;                                      // refused just now: upstream will report the address
  bool complete_ = true;
  bool conflict_ = false;  // a slot was in use when it was due
  std::int64_t hits_ = 0, misses_ = 0, planned_upstream_ = 0;
  std::int64_t hits_at_turn_ = 0;  // hits_ when unit_ was turned to
  std::uint32_t main_hits_ = 0;
  Unit* main_ = nullptr;
};

}  // namespace livepool
