// Threads that run passes on shared tables while others free their slots: for the thread sanitizer above all.
// Addresses are handed over through mailboxes that order the handover in one direction only, so that nothing
// but the pool's own ordering stands between a free and the slot's next owner. Seeds and length: trace_options.h; a
// seed repeats what each thread does, not how the threads interleave.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/pool/test_tables.h"
#include "allocator/pool/trace_options.h"
#include "livepool/pool/arena_bindings.h"
#include "livepool/pool/pass.h"

namespace livepool {
namespace {

using testing::FakePool;

// Takes one address, with the byte that its slot is filled with.
class Mailbox {
 public:
  // The sender only; false if the last one has not been fetched.
  bool TrySend(const std::byte* address, unsigned char pattern) {
    if (content_.load(std::memory_order_relaxed) != 0) return false;
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    content_.store(number << 16 | static_cast<std::uintptr_t>(pattern) << 8 | 1, std::memory_order_release);
    return true;
  }
  // The receiver only; null if there is nothing. Does not release: what the receiver did is not ordered before
  // what the sender does next.
  std::byte* TryReceive(unsigned char* pattern) {
    const std::uintptr_t content = content_.exchange(0, std::memory_order_acquire);
    *pattern = static_cast<unsigned char>(content >> 8);
    return reinterpret_cast<std::byte*>(content >> 16);
  }

 private:
  std::atomic<std::uintptr_t> content_{0};
};

constexpr std::size_t kWorkers = 3;
constexpr std::size_t kReceivers = 2;
constexpr std::size_t kSlots = 24;

// Slot i has (1 + i % 3) * 64 bytes; every third one shares bytes with its neighbour. Op i allocates slot i, op
// kSlots + i joins its owner.
SlotTable MakeTable(Bytes shift) {
  std::vector<SlotRange> ranges;
  std::vector<std::vector<PlannedAllocation>> ops;
  for (const bool join : {false, true}) {
    for (std::size_t i = 0; i < kSlots; ++i) {
      const Bytes size = static_cast<Bytes>(1 + i % 3) * 64;
      if (!join) ranges.push_back({.offset = shift + static_cast<Bytes>(i) * 128, .size = size});
      ops.push_back({{.size = size, .range = static_cast<std::int32_t>(i), .in_place = join}});
    }
  }
  return testing::TableOf(ranges, ops);
}

class PoolThreadsTest : public ::testing::Test {
 protected:
  void FreeChecked(std::byte* address, unsigned char pattern) {
    PlannedArena* const arena = fake_.pool->Find(address);
    // At least so much was written.
    if (arena == nullptr || !testing::AllBytesAre(address, 64, std::byte{pattern})) {
      return Complain("expected bytes of " + std::to_string(pattern) + " in a slot that is freed, found " +
                      (arena == nullptr ? "no arena" : std::to_string(std::to_integer<int>(*address))));
    }
    arena->Free(address);
  }
  void Complain(const std::string& what) {
    const std::lock_guard lock(wrong_mutex_);
    if (wrong_.size() < 5) wrong_.push_back(what);
  }

  void RunPass(ArenaBindings& graph, std::size_t worker, std::mt19937_64& random) {
    struct Tensor {
      std::byte* address;
      unsigned char pattern;
    };
    std::vector<Tensor> own;
    PlannedArena& arena = fake_.pool->Borrow(graph.table().height);
    {
      Pass pass(*fake_.pool, arena, graph.On(arena), nullptr, random() % 8 == 0 ? Fill::kNan : Fill::kNone);
      for (std::size_t i = 0; i < 3 * kSlots; ++i) {
        const std::size_t op = random() % kSlots;
        const Bytes size = graph.table().allocations[op].size;
        pass.BeginOp(static_cast<OpIndex>(op), nullptr);
        std::byte* const address = pass.Serve(size, nullptr);
        pass.EndOp();
        if (address != nullptr) {
          const auto pattern = static_cast<unsigned char>(random());
          std::memset(address, pattern, static_cast<std::size_t>(size));
          pass.BeginOp(static_cast<OpIndex>(kSlots + op), address);
          const bool joined = random() % 2 == 0 && pass.Serve(size, nullptr) == address;
          pass.EndOp();
          for (int owners = joined ? 2 : 1; owners > 0; --owners) {
            if (!mailboxes_[worker][random() % kReceivers].TrySend(address, pattern)) own.push_back({address, pattern});
          }
        }
        if (own.size() > 6 || (address == nullptr && !own.empty())) {
          FreeChecked(own.back().address, own.back().pattern);
          own.pop_back();
        }
      }
      if (!arena.CheckInvariants()) Complain("worker " + std::to_string(worker) + ": live slots out of order");
      hits_ += pass.hits();
      const bool late = random() % 2 == 0;
      while (!late && !own.empty()) {
        FreeChecked(own.back().address, own.back().pattern);
        own.pop_back();
      }
    }
    fake_.pool->Return(arena);
    for (const Tensor& tensor : own) FreeChecked(tensor.address, tensor.pattern);  // nobody, or another, holds it now
  }

  void Work(std::size_t worker, std::uint64_t seed, std::int64_t passes) {
    std::mt19937_64 random(seed * kWorkers + worker);
    std::unique_ptr<ArenaBindings> own;
    for (std::int64_t i = 0; i < passes; ++i) {
      if (i % 16 == 0) own = std::make_unique<ArenaBindings>(MakeTable(static_cast<Bytes>(random() % 8) * 64));
      RunPass(i % 2 == 0 ? *own : shared_, worker, random);
    }
  }

  void Receive(std::size_t receiver) {
    // Once more after the last worker has gone.
    for (bool last = false, done = false; !done; done = last) {
      last = working_.load(std::memory_order_acquire) == 0;
      for (std::size_t worker = 0; worker < kWorkers; ++worker) {
        unsigned char pattern = 0;
        if (std::byte* const address = mailboxes_[worker][receiver].TryReceive(&pattern)) FreeChecked(address, pattern);
      }
      std::this_thread::yield();
    }
  }

  FakePool fake_;
  ArenaBindings shared_{MakeTable(0)};
  std::array<std::array<Mailbox, kReceivers>, kWorkers> mailboxes_;
  std::atomic<std::size_t> working_{kWorkers};
  std::atomic<std::int64_t> hits_{0};
  std::mutex wrong_mutex_;
  std::vector<std::string> wrong_;
};

TEST_F(PoolThreadsTest, SlotsAreFreedByOthersWhilePassesRun) {
  constexpr std::int64_t kOpsOfAPass = 3 * kSlots;
  const std::int64_t passes = testing::Operations(2'000'000) / static_cast<std::int64_t>(kWorkers) / kOpsOfAPass;
  const auto seed = static_cast<std::uint64_t>(testing::OnlySeed().value_or(0));
  std::vector<std::thread> threads;
  for (std::size_t worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([this, worker, seed, passes] {
      Work(worker, seed, passes);
      working_.fetch_sub(1, std::memory_order_release);
    });
  }
  for (std::size_t receiver = 0; receiver < kReceivers; ++receiver) {
    threads.emplace_back([this, receiver] { Receive(receiver); });
  }
  threads.emplace_back([this] {
    while (working_.load(std::memory_order_acquire) > 0) {
      fake_.pool->Trim();
      (void)fake_.pool->Stats();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong_, ::testing::IsEmpty()) << "POOL_TEST_SEED=" << seed;
  EXPECT_GT(hits_, passes * 10);
  EXPECT_EQ(fake_.pool->Stats().passes, static_cast<std::int64_t>(kWorkers) * passes);
  fake_.pool->Trim();
  EXPECT_EQ(fake_.pool->Stats().live_bytes, 0);
  EXPECT_EQ(fake_.backend->mapped(), 0);
  EXPECT_THAT(fake_.backend->misuse(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace livepool
