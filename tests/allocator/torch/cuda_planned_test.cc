// The CUDA allocator while it serves a plan: what torch's users see of the arena. On fakes, without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "allocator/torch/cuda_fake_machine.h"
#include "allocator/torch/cuda_fake_upstream.h"
#include "allocator/torch/slot_free_sink.h"
#include "cuda_allocator.h"
#include "livepool/base/error.h"
#include "livepool/pool/pass.h"

namespace livepool {
namespace {

using c10_compat::SegmentInfo;
using c10_compat::TraceEntry;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr c10_compat::MempoolId_t kNoPool{0, 0};
constexpr c10_compat::MempoolId_t kPool{0, 5};

//  0     2 MiB        5 MiB     6 MiB
//  |--0--|-----1------|    2    |        One op with three allocations, and 2 MiB that no slot covers.
constexpr SlotRange kRanges[] = {{0, 2_MiB}, {2_MiB, 3_MiB}, {6_MiB, 2_MiB}};

class CudaPlannedTest : public ::testing::Test {
 protected:
  CudaPlannedTest() {
    FakeMachine::Reset();
    table_.first_of_op = {0, 3};
    for (int i = 0; i < 3; ++i) {
      table_.ranges.push_back(kRanges[i]);
      table_.allocations.push_back({.size = kRanges[i].size, .range = i});
    }
    table_.height = 8_MiB;
  }
  ~CudaPlannedTest() override {
    FakeMachine::Reset();
    EXPECT_THAT(driver_.misuse(), IsEmpty());
  }

  ArenaPool& pool() { return device().Pool(); }
  CudaDevice& device() { return allocator_.Device(0); }
  c10_compat::DeviceStats Stats() { return base_.getDeviceStats(0); }
  void* At(Bytes offset) { return arena_->arena().base() + offset; }

  // What PlannedProgram does around the ops of a replay, but for CUDA's events.
  void BeginPass() {
    arena_ = &pool().Borrow(table_.height);
    if (bound_ == nullptr) bound_ = arena_->Bind(table_);
    device().stats().CloseWindow();
    pass_.emplace(pool(), *arena_, *bound_, FakeMachine::current, Fill::kNone);
    pass_->BeginOp(0, nullptr);
  }
  void EndPass() {
    pass_.reset();
    device().stats().CloseWindow();
    pool().Return(*arena_);
  }
  // An idle arena with 8 MiB mapped.
  void MakeIdleArena() {
    BeginPass();
    EndPass();
  }

  FakeDriver driver_;
  FakeUpstream& upstream_ = *new FakeUpstream;  // immortal, as in a process
  CudaAllocator& allocator_ = *new CudaAllocator(upstream_, FakeMachine::kMachine);
  c10_compat::CUDAAllocator& base_ = allocator_;
  SlotTable table_;
  PlannedArena* arena_ = nullptr;
  BoundTable* bound_ = nullptr;
  std::optional<Pass> pass_;
};

TEST_F(CudaPlannedTest, ServesSlotsThatFreeThemselves) {
  BeginPass();
  c10::DataPtr data = base_.allocate(2_MiB);
  EXPECT_EQ(data.get(), At(0));
  EXPECT_EQ(data.get_context(), data.get());
  EXPECT_EQ(data.device(), c10::Device(c10::kCUDA, 0));
  EXPECT_THAT(upstream_.calls, testing::Not(testing::Contains("allocate")));
  data.clear();
  EXPECT_EQ(arena_->LiveBytes(), 0);
  EndPass();
}

// Who records a run that slots serve must know when they are free.
TEST_F(CudaPlannedTest, ASinkHearsWhenASlotIsFreed) {
  BeginPass();
  {
    SlotFreeSink sink;
    base_.allocate(2_MiB).clear();
    base_.raw_deallocate(base_.raw_allocate(3_MiB));
    base_.allocate(77).clear();  // a miss
    EXPECT_THAT(sink.slots, ElementsAre(At(0), At(2_MiB)));
    EXPECT_THAT(sink.devices, testing::Each(pool().device()));
    EXPECT_EQ(sink.allocated, 1);
    EXPECT_EQ(sink.freed, 1);
  }
  EndPass();
}

// Extensions use the pair for workspaces; native's own deleter does not know a slot.
TEST_F(CudaPlannedTest, RawAllocateAndRawDeallocateAreAPairForSlotsAndForMisses) {
  BeginPass();
  void* const slot = base_.raw_allocate(2_MiB);
  EXPECT_EQ(slot, At(0));
  void* const missed = base_.raw_allocate(77);
  base_.raw_deallocate(slot);
  EXPECT_EQ(arena_->LiveBytes(), 0);
  base_.raw_deallocate(missed);
  EXPECT_THAT(upstream_.freed, ElementsAre(missed));
  EndPass();
  EXPECT_EQ(base_.raw_deleter(), &FakeUpstream::Deleter) << "torch.compile compares with it";
}

TEST_F(CudaPlannedTest, ASnapshotShowsEachLiveSlot) {
  BeginPass();
  c10::DataPtr a = base_.allocate(2_MiB);
  c10::DataPtr b = base_.allocate(3_MiB);
  c10::DataPtr c = base_.allocate(2_MiB);
  a.clear();
  EndPass();
  const std::vector<SegmentInfo> segments = base_.snapshot().segments;
  ASSERT_EQ(segments.size(), 1U);
  const SegmentInfo& arena = segments[0];
  EXPECT_EQ(arena.address, reinterpret_cast<std::size_t>(arena_->arena().base()));
  EXPECT_EQ(arena.total_size, static_cast<std::size_t>(8_MiB));
  EXPECT_EQ(arena.allocated_size, static_cast<std::size_t>(5_MiB));
  EXPECT_EQ(arena.active_size, arena.allocated_size);
  EXPECT_EQ(arena.allocated_size, static_cast<std::size_t>(Stats().allocated_bytes[0].current));
  std::vector<std::pair<std::size_t, bool>> blocks;
  for (const auto& block : arena.blocks) blocks.emplace_back(block.size >> 20, block.allocated);
  EXPECT_THAT(blocks, ElementsAre(std::pair(2, false), std::pair(3, true), std::pair(1, false), std::pair(2, true)));
}

TEST_F(CudaPlannedTest, ASnapshotOfAnotherThreadsPassShowsItsArenaInUse) {
  BeginPass();
  const c10::DataPtr a = base_.allocate(2_MiB);
  std::thread([&] {
    const SegmentInfo arena = base_.snapshot().segments.at(0);
    ASSERT_EQ(arena.blocks.size(), 1U);
    EXPECT_EQ(arena.blocks[0].size, arena.total_size);
    EXPECT_TRUE(arena.blocks[0].allocated);
    EXPECT_EQ(arena.requested_size, static_cast<std::size_t>(2_MiB));
  }).join();
  EXPECT_EQ(base_.snapshot().segments.at(0).blocks.size(), 2U) << "the pass's own thread knows its slots";
  EndPass();
}

TEST_F(CudaPlannedTest, AnArenaUnderACudaGraphIsInUseAndStays) {
  MakeIdleArena();
  arena_->arena().Pin();
  const SegmentInfo arena = base_.snapshot().segments.at(0);
  EXPECT_EQ(arena.active_size, arena.total_size);
  EXPECT_EQ(arena.allocated_size, 0U);
  base_.emptyCache(kNoPool);
  EXPECT_EQ(arena_->arena().mapped(), 8_MiB) << "torch.cuda.graph itself calls empty_cache: skipped silently";
  EXPECT_THROW(pool().CheckTrim(), ArenaInUse);
  std::byte* const base = arena_->arena().base();
  PlannedArena& grown = pool().Borrow(16_MiB);
  EXPECT_EQ(&grown, arena_);
  EXPECT_EQ(grown.arena().base(), base) << "growth moves nothing";
  pool().Return(grown);
  arena_->arena().Unpin();
  base_.emptyCache(kNoPool);
  EXPECT_EQ(driver_.mapped(), 0);
}

TEST_F(CudaPlannedTest, StatisticsAreRightInAndAfterAPass) {
  BeginPass();
  c10::DataPtr a = base_.allocate(2_MiB);
  c10::DataPtr b = base_.allocate(3_MiB);
  EXPECT_EQ(Stats().allocated_bytes[0].current, 5_MiB);
  EXPECT_EQ(Stats().allocation[0].current, 2);
  a.clear();
  c10::DataPtr late = base_.allocate(2_MiB);
  b.clear();
  EndPass();
  EXPECT_EQ(Stats().allocated_bytes[0].current, 2_MiB);
  EXPECT_EQ(Stats().allocated_bytes[0].peak, 5_MiB);
  EXPECT_EQ(Stats().allocation[0].allocated, 3);
  EXPECT_EQ(Stats().allocation[0].freed, 2);
  std::thread([&] { late.clear(); }).join();
  EXPECT_EQ(Stats().allocated_bytes[0].current, 0) << "at once, though no pass has seen the free";
  EXPECT_EQ(Stats().allocation[0].current, 0);
  EXPECT_EQ(Stats().reserved_bytes[0].current, 8_MiB);
  base_.resetPeakStats(0);
  EXPECT_EQ(Stats().allocated_bytes[0].peak, 0);
}

TEST_F(CudaPlannedTest, AnArenaThatWouldBreakTheLimitTakesIdleMemoryFirstAndIsThenRefused) {
  allocator_.SetMemoryLimit(20_MiB);
  MakeIdleArena();
  upstream_.Reserve(10_MiB);
  EXPECT_DOUBLE_EQ(upstream_.fraction, 12.0 / 1024);
  upstream_.calls.clear();
  EXPECT_THROW((void)pool().Borrow(14_MiB), OutOfMemory);
  EXPECT_THAT(upstream_.calls, testing::Contains("emptyCache"));
  EXPECT_EQ(pool().Stats().refused, 1);
  pool().Return(pool().Borrow(10_MiB));
  EXPECT_DOUBLE_EQ(upstream_.fraction, 10.0 / 1024);
  allocator_.SetMemoryLimit(std::nullopt);
  EXPECT_EQ(upstream_.fraction, 1);
  pool().Return(pool().Borrow(64_MiB));
}

TEST_F(CudaPlannedTest, BeforeAnOutOfMemoryIdleArenasGiveTheirMemory) {
  MakeIdleArena();
  int observed = 0;
  base_.attachOutOfMemoryObserver([&](int64_t, size_t, size_t, size_t) { ++observed; });
  upstream_.fail_next = 1;
  EXPECT_NE(base_.allocate(64).get(), nullptr);
  EXPECT_EQ(driver_.mapped(), 0);
  EXPECT_EQ(observed, 0) << "nobody has seen an error";
  EXPECT_EQ(Stats().num_ooms, 0);
}

TEST_F(CudaPlannedTest, AnOutOfMemoryIsTorchsOwnAndSaysWhatTheArenaHolds) {
  MakeIdleArena();
  int observed = 0;
  base_.attachOutOfMemoryObserver([&](int64_t, size_t size, size_t, size_t) { observed += size == 77; });
  BeginPass();
  const c10::DataPtr slot = base_.allocate(2_MiB);
  upstream_.fail_next = 2;
  try {
    (void)base_.allocate(77);  // a miss
    ADD_FAILURE() << "no error";
  } catch (const c10::OutOfMemoryError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("CUDA out of memory"), HasSubstr("the arenas of cuda:0 hold 8.00 MiB"),
                                    HasSubstr("2.00 MiB of them in live tensors"), HasSubstr("plan takes 8.00 MiB")));
  }
  EXPECT_EQ(observed, 1);
  upstream_.fail_next = 0;
  EXPECT_NE(base_.allocate(64).get(), nullptr) << "the next small request works";
  EndPass();
}

TEST_F(CudaPlannedTest, DuringACaptureNothingIsUnmapped) {
  MakeIdleArena();
  const cudaStream_t captured = FakeStream(7);
  FakeMachine::current = captured;
  base_.beginAllocateToPool(0, kPool, [](cudaStream_t) { return true; });
  FakeMachine::captured = captured;
  FakeMachine::current = nullptr;  // as another thread sees it
  upstream_.fail_next = 1;
  EXPECT_THROW(base_.allocate(64), c10::OutOfMemoryError);
  base_.emptyCache(kNoPool);
  EXPECT_THROW(pool().CheckTrim(), ArenaInUse);
  EXPECT_EQ(pool().Trim(), 0);
  upstream_.calls.clear();
  EXPECT_THROW((void)pool().Borrow(2_GiB), OutOfMemory);  // more than is reserved
  driver_.FailEvery("MemCreate", cuda::kOutOfMemory);
  EXPECT_THROW((void)pool().Borrow(512_MiB), OutOfMemory);
  driver_.Heal();
  EXPECT_THAT(upstream_.calls, testing::Not(testing::Contains("emptyCache")));
  EXPECT_EQ(driver_.mapped(), 8_MiB);
  EXPECT_EQ(driver_.calls("MemUnmap"), 0);
  FakeMachine::captured = nullptr;
  base_.endAllocateToPool(0, kPool);
  EXPECT_EQ(pool().Trim(), 8_MiB);
}

// Row 8 of the field's faults.
TEST_F(CudaPlannedTest, InAMemPoolScopeIdleMemoryIsGivenBack) {
  MakeIdleArena();
  base_.beginAllocateToPool(0, kPool, [](cudaStream_t) { return true; });
  upstream_.fail_next = 1;
  EXPECT_NE(base_.allocate(64).get(), nullptr);
  EXPECT_EQ(driver_.mapped(), 0);
  base_.endAllocateToPool(0, kPool);
}

TEST_F(CudaPlannedTest, ASlotIsNotSharedWithAnotherProcess) {
  BeginPass();
  const c10::DataPtr slot = base_.allocate(2_MiB);
  EXPECT_THROW(base_.shareIpcHandle(slot.get()), c10::Error);
  std::size_t size = 0;
  EXPECT_EQ(base_.getBaseAllocation(slot.get(), &size), At(0));
  EXPECT_EQ(size, static_cast<std::size_t>(8_MiB));
  EndPass();
}

std::shared_ptr<c10::GatheredContext> NoContext() { return nullptr; }
std::shared_ptr<c10::GatheredContext> AContext() { return std::make_shared<c10::GatheredContext>(); }

std::vector<std::pair<TraceEntry::Action, std::size_t>> Actions(const std::vector<TraceEntry>& trace) {
  std::vector<std::pair<TraceEntry::Action, std::size_t>> actions;
  for (const TraceEntry& entry : trace) actions.emplace_back(entry.action_, entry.addr_);
  return actions;
}

TEST_F(CudaPlannedTest, TheMemoryHistoryHasSlotsBetweenUpstreamsEntries) {
  for (const time_t time : {time_t{1}, std::numeric_limits<time_t>::max()}) {
    TraceEntry entry(TraceEntry::ALLOC, 0, 0x1, 64, nullptr, kNoPool, 0);
    entry.time_.t_ = time;
    upstream_.traces.resize(1);
    upstream_.traces[0].push_back(entry);
  }
  base_.recordHistory(true, &AContext, 100, c10_compat::RecordContext::ALLOC, false, {});
  BeginPass();
  { const c10::DataPtr slot = base_.allocate(2_MiB); }
  EndPass();
  const auto slot = reinterpret_cast<std::size_t>(At(0));
  const std::vector<TraceEntry> trace = base_.snapshot().device_traces.at(0);
  EXPECT_THAT(Actions(trace),
              ElementsAre(std::pair(TraceEntry::ALLOC, 1U), std::pair(TraceEntry::ALLOC, slot),
                          std::pair(TraceEntry::FREE_REQUESTED, slot), std::pair(TraceEntry::FREE_COMPLETED, slot),
                          std::pair(TraceEntry::ALLOC, 1U)));
  EXPECT_EQ(trace[1].size_, static_cast<std::size_t>(2_MiB));
  EXPECT_NE(trace[1].context_, nullptr);
  EXPECT_EQ(trace[2].context_, nullptr) << "stacks of frees are for RecordContext::ALL";
  EXPECT_EQ(base_.snapshot(kNoPool, /*include_traces=*/false).device_traces.at(0).size(), 2U) << "upstream's";
}

TEST_F(CudaPlannedTest, TheHistoryKeepsItsLengthAndSkipsWhatItShould) {
  base_.recordHistory(true, &NoContext, 2, c10_compat::RecordContext::ALL, false, {"free_requested"});
  for (int i = 0; i < 3; ++i) {
    BeginPass();
    { const c10::DataPtr slot = base_.allocate(2_MiB); }
    EndPass();
  }
  const auto slot = reinterpret_cast<std::size_t>(At(0));
  EXPECT_THAT(Actions(base_.snapshot().device_traces.at(0)),
              ElementsAre(std::pair(TraceEntry::ALLOC, slot), std::pair(TraceEntry::FREE_COMPLETED, slot)));
  base_.recordHistory(false, nullptr, 1, c10_compat::RecordContext::NEVER, false, {});
  EXPECT_THAT(base_.snapshot().device_traces, IsEmpty());
}

}  // namespace
}  // namespace livepool
