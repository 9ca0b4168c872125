// Random traces against a reference that knows every live tensor: passes (nested ones too) serve from random
// tables, whose ranges overlap at will, tensors are freed by this and another thread, outlive their pass and
// their table, requests come from other streams, memory is trimmed. Each tensor is filled with a pattern, which must
// be there when it is freed. Seeds and length: trace_options.h.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/pool/test_tables.h"
#include "allocator/pool/trace_options.h"
#include "livepool/pool/pass.h"

namespace livepool {
namespace {

using testing::FakePool;

// Runs one piece of work at a time on a thread of its own.
class OtherThread {
 public:
  OtherThread() : thread_([this] { Loop(); }) {}
  ~OtherThread() {
    Run(nullptr);
    thread_.join();
  }
  void Run(std::function<void()> work) {
    std::unique_lock lock(mutex_);
    work_ = std::move(work);
    due_ = true;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !due_; });
  }

 private:
  void Loop() {
    std::unique_lock lock(mutex_);
    for (bool stop = false; !stop;) {
      changed_.wait(lock, [&] { return due_; });
      stop = work_ == nullptr;
      if (!stop) work_();
      due_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;
  bool due_ = false;
  std::thread thread_;
};

class World {
 public:
  explicit World(std::uint64_t seed) : seed_(seed), random_(seed), fake_({.capacity = 512_KiB, .granularity = 1_KiB}, 64_KiB) {
    for (int i = 0; i < 3; ++i) tables_.push_back(RandomTable());
  }

  void Step() {
    ++step_;
    switch (Below(32)) {
      case 0:
        if (passes_.size() < 3) BeginPass();
        break;
      case 1:
        EndPass();
        break;
      case 2:
        if (Below(4) == 0) Trim();
        break;
      case 3:
        if (Below(4) == 0) ChangeAPlan();
        break;
      case 4:
        if (Below(16) == 0) FreeAll();
        break;
      case 5:
      case 6:
      case 7:
      case 8:
      case 9:
      case 10:
      case 11:
        FreeHere();
        break;
      case 12:
      case 13:
        FreeElsewhere();
        break;
      default:
        Serve();
    }
    for (const std::unique_ptr<RunningPass>& each : passes_) {
      ASSERT_TRUE(each->arena.CheckInvariants()) << Where() << "expected: live slots are in order and apart";
    }
  }

  void Finish() {
    while (!passes_.empty()) EndPass();
    FreeAll();
    Trim();
    EXPECT_EQ(fake_.backend->mapped(), 0) << Where();
    EXPECT_EQ(fake_.pool->Stats().live_bytes, 0) << Where();
    EXPECT_THAT(fake_.backend->misuse(), ::testing::IsEmpty()) << Where();
    EXPECT_EQ(fake_.pool->Stats().hits, hits_) << Where();
    EXPECT_EQ(fake_.pool->Stats().misses, misses_) << Where();
  }

  std::int64_t hits() const { return hits_; }
  std::int64_t joins() const { return joins_; }
  std::int64_t refused() const { return refused_; }

 private:
  struct Tensor {
    std::byte* address = nullptr;
    Bytes size = 0;              // of its slot
    const Slot* slot = nullptr;  // of which slot: tensors that share it were joined
    bool poisoned = false;       // its pass fills with NaN bytes
    bool overwritten = false;    // a joined tensor has its bytes now
    unsigned char pattern = 0;
  };
  struct Table {
    SlotTable table;
    std::map<PlannedArena*, BoundTable*> bound;
  };
  struct RunningPass {
    PlannedArena& arena;
    BoundTable& bound;
    StreamHandle stream;
    Fill fill;
    Pass pass;
    RunningPass(ArenaPool& pool, PlannedArena& lent, BoundTable& table, StreamHandle on, Fill what)
        : arena(lent), bound(table), stream(on), fill(what), pass(pool, lent, table, on, what) {}
  };

  std::string Where() const {
    return "POOL_TEST_SEED=" + std::to_string(seed_) + ", step " + std::to_string(step_) + ": ";
  }
  std::size_t Below(std::size_t n) { return static_cast<std::size_t>(random_()) % n; }

  // Up to 24 KiB of ranges that need not be a good plan.
  Table RandomTable() {
    std::vector<SlotRange> ranges(4 + Below(30));
    const std::size_t units = 64 + Below(300);
    for (SlotRange& range : ranges) {
      range.size = static_cast<Bytes>(64 * (1 + Below(1 + units / 8)));
      range.offset = static_cast<Bytes>(64 * Below(units));
    }
    std::vector<std::vector<PlannedAllocation>> ops(1 + Below(20));
    for (auto& op : ops) {
      op.resize(Below(4));
      for (PlannedAllocation& allocation : op) {
        const std::size_t range = Below(ranges.size());
        allocation.size = ranges[range].size;
        if (Below(8) == 0) continue;  // upstream
        allocation.range = static_cast<std::int32_t>(range);
        allocation.in_place = Below(4) == 0;
      }
    }
    return {.table = testing::TableOf(ranges, ops), .bound = {}};
  }

  void BeginPass() {
    Table& table = tables_[Below(tables_.size())];
    PlannedArena& arena = fake_.pool->Borrow(table.table.height);
    for (const std::unique_ptr<RunningPass>& each : passes_) {
      ASSERT_NE(&each->arena, &arena) << Where() << "expected: two passes at once never share an arena";
    }
    for (const Tensor& tensor : tensors_) {
      ASSERT_FALSE(Overlaps(tensor, arena.arena().base(), table.table.height))
          << Where() << "expected: a plan starts only where nothing lives in its range";
    }
    ASSERT_GE(arena.arena().mapped(), table.table.height) << Where();
    BoundTable*& bound = table.bound[&arena];
    if (bound == nullptr) bound = arena.Bind(table.table);
    constexpr Fill kFills[] = {Fill::kNone, Fill::kNone, Fill::kNan, Fill::kZero};
    passes_.push_back(std::make_unique<RunningPass>(*fake_.pool, arena, *bound, AnyStream(), kFills[Below(4)]));
  }

  StreamHandle AnyStream() { return &streams_[Below(streams_.size())]; }

  void EndPass() {
    if (passes_.empty()) return;
    PlannedArena& arena = passes_.back()->arena;
    passes_.pop_back();
    fake_.pool->Return(arena);
  }

  static bool Overlaps(const Tensor& tensor, const std::byte* address, Bytes size) {
    return tensor.address < address + size && address < tensor.address + tensor.size;
  }

  // One op of the innermost pass, with all its allocations, and perhaps one too many.
  void Serve() {
    if (passes_.empty()) return;
    RunningPass& running = *passes_.back();
    const std::size_t ops = running.bound.first_of_op.size() - 1;
    const std::size_t op = Below(ops);
    const std::uint32_t begin = running.bound.first_of_op[op];
    const std::uint32_t end = running.bound.first_of_op[op + 1];
    const void* giver = tensors_.empty() || Below(8) == 0 ? nullptr : tensors_[Below(tensors_.size())].address;
    for (std::uint32_t i = begin; i < end && Below(4) > 0; ++i) {
      const BoundTable::Entry& entry = running.bound.entries[i];
      if (!entry.in_place || entry.slot == nullptr) continue;
      // A giver is alive.
      for (const Tensor& tensor : tensors_) giver = tensor.address == entry.slot->begin ? tensor.address : giver;
    }
    running.pass.BeginOp(static_cast<OpIndex>(op), giver);
    for (std::uint32_t i = begin; i < end; ++i) {
      const BoundTable::Entry& entry = running.bound.entries[i];
      const bool fits = Below(16) > 0;
      ServeOne(running, entry, fits, giver);
    }
    if (Below(8) == 0) {
      ASSERT_EQ(running.pass.Serve(64, running.stream), nullptr) << Where() << "more than planned";
      ++misses_;
    }
    running.pass.EndOp();
  }

  void ServeOne(RunningPass& running, const BoundTable::Entry& entry, bool fits, const void* giver) {
    const Bytes size =
        fits ? entry.size - static_cast<Bytes>(Below(64)) : entry.size + 1 + static_cast<Bytes>(Below(512));
    const StreamHandle stream = Below(16) > 0 ? running.stream : AnyStream();
    fits = fits && stream == running.stream;
    std::byte* const served = running.pass.Serve(size, stream);
    if (entry.slot == nullptr) {
      ASSERT_EQ(served, nullptr) << Where() << "planned to go upstream";
      return;
    }
    // Everything that other threads freed was freed before this, so the reference knows what is free, exactly.
    bool right = fits;
    if (entry.in_place) {
      const auto owners =
          std::count_if(tensors_.begin(), tensors_.end(), [&](const Tensor& t) { return t.slot == entry.slot; });
      right = fits && giver == entry.slot->begin && owners == 1;
    } else {
      for (const Tensor& tensor : tensors_) right = right && !Overlaps(tensor, entry.slot->begin, entry.slot->size);
    }
    ASSERT_EQ(served != nullptr, right) << Where() << "expected " << (right ? "a slot" : "none") << ", "
                                        << (entry.in_place ? "in place" : "alone") << ", for " << size << " bytes, "
                                        << entry.size << " planned, on " << (fits ? "its" : "its or another") << " stream";
    if (served == nullptr) {
      ++misses_;
      if (fits) ++refused_;
      return;
    }
    ++hits_;
    ASSERT_EQ(served, entry.slot->begin) << Where();
    if (entry.in_place) {
      ++joins_;
      for (Tensor& tensor : tensors_) tensor.overwritten |= tensor.slot == entry.slot;
    }
    tensors_.push_back({.address = served,
                        .size = entry.slot->size,
                        .slot = entry.slot,
                        .poisoned = running.fill == Fill::kNan,
                        .pattern = static_cast<unsigned char>(random_())});
    std::memset(served, tensors_.back().pattern, static_cast<std::size_t>(entry.slot->size));
  }

  // Takes a tensor out of the reference, after a look at its bytes.
  Tensor Take(std::size_t i) {
    const Tensor tensor = tensors_[i];
    tensors_[i] = tensors_.back();
    tensors_.pop_back();
    if (!tensor.overwritten) {
      EXPECT_TRUE(testing::AllBytesAre(tensor.address, tensor.size, std::byte{tensor.pattern}))
          << Where() << "expected " << tensor.size << " bytes of " << int{tensor.pattern} << ": overwritten";
    }
    return tensor;
  }

  void Free(const Tensor& tensor) { fake_.pool->Find(tensor.address)->Free(tensor.address); }

  void FreeHere() {
    if (tensors_.empty()) return;
    const Tensor tensor = Take(Below(tensors_.size()));
    PlannedArena* const arena = fake_.pool->Find(tensor.address);
    Free(tensor);
    const bool held = std::any_of(passes_.begin(), passes_.end(),
                                  [&](const auto& each) { return &each->arena == arena && each->fill == Fill::kNan; });
    const bool last =
        std::none_of(tensors_.begin(), tensors_.end(), [&](const Tensor& t) { return t.slot == tensor.slot; });
    // Where another thread has freed a slot's other owner, the arena may not have seen that yet.
    if (held && last && tensor.slot->live == 0) {
      ASSERT_TRUE(testing::AllBytesAre(tensor.address, tensor.size, std::byte{0xFF})) << Where() << "not poisoned";
    }
  }

  void FreeElsewhere() {
    std::vector<Tensor> free;
    for (std::size_t n = 1 + Below(4); n > 0 && !tensors_.empty(); --n) free.push_back(Take(Below(tensors_.size())));
    other_.Run([&] {
      for (const Tensor& tensor : free) Free(tensor);
    });
  }

  void FreeAll() {
    while (!tensors_.empty()) {
      const Tensor tensor = Take(tensors_.size() - 1);
      Below(2) == 0 ? Free(tensor) : other_.Run([&] { Free(tensor); });
    }
  }

  void Trim() {
    fake_.pool->Trim();
    for (const Tensor& tensor : tensors_) {
      ASSERT_TRUE(fake_.backend->IsMapped(tensor.address)) << Where() << "a trim took the memory of a live tensor";
      ASSERT_TRUE(fake_.backend->IsMapped(tensor.address + tensor.size - 1)) << Where();
    }
  }

  // Its tensors may live on. A table in use stays, as its graph is held by the caller.
  void ChangeAPlan() {
    Table& table = tables_[Below(tables_.size())];
    for (const std::unique_ptr<RunningPass>& running : passes_) {
      for (const auto& [arena, bound] : table.bound) {
        if (bound == &running->bound) return;
      }
    }
    for (const auto& [arena, bound] : table.bound) arena->Unbind(bound);
    table = RandomTable();
  }

  const std::uint64_t seed_;
  std::int64_t step_ = 0;
  std::mt19937_64 random_;
  std::array<int, 3> streams_{};  // their addresses are the handles
  FakePool fake_;
  OtherThread other_;
  std::vector<Table> tables_;
  std::vector<std::unique_ptr<RunningPass>> passes_;  // the innermost last
  std::vector<Tensor> tensors_;
  std::int64_t hits_ = 0, misses_ = 0, joins_ = 0, refused_ = 0;
};

TEST(PoolRandomTest, EqualsTheReference) {
  constexpr std::int64_t kSeeds = 20;
  const std::int64_t steps = testing::Operations(200'000) / kSeeds;
  const std::int64_t first = testing::OnlySeed().value_or(0);
  const std::int64_t last = testing::OnlySeed().value_or(kSeeds - 1);
  std::cerr << "seeds " << first << " to " << last << ", " << steps << " steps each\n";
  std::int64_t hits = 0, joins = 0, refused = 0;
  for (std::int64_t seed = first; seed <= last; ++seed) {
    World world(static_cast<std::uint64_t>(seed));
    for (std::int64_t i = 0; i < steps; ++i) {
      world.Step();
      if (HasFailure()) return;
    }
    world.Finish();
    hits += world.hits();
    joins += world.joins();
    refused += world.refused();
  }
  // The walk has been everywhere.
  EXPECT_GT(hits, steps / 10);
  EXPECT_GT(joins, 10);
  EXPECT_GT(refused, steps / 10);
  RecordProperty("hits", std::to_string(hits));
  std::cerr << "hits " << hits << ", joined " << joins << ", refused " << refused << '\n';
}

}  // namespace
}  // namespace livepool
