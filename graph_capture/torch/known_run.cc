#include "known_run.h"

#include "device_context.h"
#include "livepool/base/env.h"
#include "livepool/base/error.h"
#include "livepool/pool/arena_bindings.h"
#include "livepool/pool/arena_lease.h"
#include "livepool/pool/pass.h"

namespace livepool {

// In this order: the pass ends first, and the table outlives the lease.
struct KnownRun::Served {
  Served(ArenaPool& pool, SlotTable table)
      : bindings(std::move(table)),
        lease(pool, bindings.table().height),
        order(pool.device(), lease.arena()),
        pass(pool, lease.arena(), bindings.On(lease.arena()), CurrentStream(pool.device()), GetEnv().fill) {}

  ArenaBindings bindings;
  ArenaLease lease;
  DevicePassScope order;
  Pass pass;
};

std::unique_ptr<KnownRun> KnownRun::Begin(ArenaPool& pool, const ExpectedRun& expected, TraceWriter& writer) {
  if (!GetEnv().enabled || ServingForbidden(pool.device())) return nullptr;
  try {
    return std::unique_ptr<KnownRun>(new KnownRun(pool, expected, writer));
  } catch (const OutOfMemory&) {
    return nullptr;  // counted by the pool; upstream says so if it has no memory either
  }
}

KnownRun::KnownRun(ArenaPool& pool, const ExpectedRun& expected, TraceWriter& writer)
    : Server(pool.device()), ops_(expected.ops), writer_(writer) {
  SlotTable table = TableOf(expected.run, pool.backend().Alignment());
  table.Check();
  served_ = std::make_unique<Served>(pool, std::move(table));
  CurrentThread().pass = this;
}

// The pass puts back who served before.
KnownRun::~KnownRun() = default;

void KnownRun::BeginOp(OpIndex op, std::string_view name) {
  const auto index = static_cast<std::size_t>(op);
  as_expected_ = as_expected_ && index < served_->bindings.table().ops();
  if (as_expected_ && ops_ != nullptr) as_expected_ = (*ops_)[index].starts_with(std::string(name) + " ");
  if (as_expected_) served_->pass.BeginOp(op, nullptr);
}

void KnownRun::EndOp(OpIndex op, std::string_view text) {
  served_->pass.EndOp();
  if (as_expected_ && ops_ != nullptr) as_expected_ = (*ops_)[static_cast<std::size_t>(op)] == text;
}

PlannedArena* KnownRun::arena() const { return served_->pass.arena(); }
Bytes KnownRun::height() const { return served_->pass.height(); }

std::byte* KnownRun::Serve(Bytes size, StreamHandle stream, const void*) {
  std::byte* const slot = served_->pass.Serve(size, stream);
  if (slot != nullptr) writer_.OnAlloc(device(), slot, size, stream);
  return slot;
}

}  // namespace livepool
