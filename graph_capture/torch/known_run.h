// Serves a run that is recorded, from what is known of an earlier one like it (Note [Saved plans]).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "livepool/graph/saved_plan.h"
#include "livepool/pool/arena_pool.h"
#include "livepool/pool/server.h"

namespace livepool {

// What a run is expected to do.
struct ExpectedRun {
  const Trace& run;
  const std::vector<std::string>* ops = nullptr;  // as SavedPlan::ops; null: the caller knows that they are the same
};

// From Begin to destruction, inside the RecordingScope of `writer`, the calling thread's allocations are served from
// slots where they are those that are expected, and are reported to `writer` either way. With the first op that is
// another one, serving ends: a buffer must not get a slot by chance, which it might hold for long.
class KnownRun final : public Server {
 public:
  // Null if the run cannot be served now: slots would become part of somebody else's capture, or there is no memory for
  // an arena. Upstream serves it then. Both references must outlive the run.
  static std::unique_ptr<KnownRun> Begin(ArenaPool& pool, const ExpectedRun& expected, TraceWriter& writer);
  ~KnownRun() override;
  KnownRun(const KnownRun&) = delete;
  KnownRun& operator=(const KnownRun&) = delete;

  // The op that `writer` has begun last. `name`: of the operator.
  void BeginOp(OpIndex op, std::string_view name);
  // Its end, with what SavedPlan::ops says of it.
  void EndOp(OpIndex op, std::string_view text);

  PlannedArena* arena() const override;
  Bytes height() const override;
  std::byte* Serve(Bytes size, StreamHandle stream, const void* frame) override;

 private:
  struct Served;
  KnownRun(ArenaPool& pool, const ExpectedRun& expected, TraceWriter& writer);

  const std::vector<std::string>* const ops_;
  TraceWriter& writer_;
  bool as_expected_ = true;
  std::unique_ptr<Served> served_;
};

}  // namespace livepool
