// The contract of whoever serves tensors, as tests: outside of a pass and inside one, what it hands out is
// aligned, disjoint, keeps its bytes and may be freed in any order by any thread. An allocator joins with a
// harness and one line:
//
//   struct MyHarness {
//     static constexpr Bytes kAlignment = 64;
//     // Whether bytes can be looked at. Where they cannot (addresses are numbers), addresses alone are checked.
//     static constexpr bool kReadable = true;
//     using Refusal = OutOfMemory;          // what a request for more than there is throws
//     static std::string WhyNot();          // why it cannot run on this machine; empty: it can
//     ArenaPool& pool();                    // where passes get their arenas
//     Block Allocate(Bytes size);           // as a tensor gets its bytes
//     void* RawAllocate(Bytes size);        // the pair without an owner
//     void RawFree(void* address);
//     void Fill(void* address, Bytes size, unsigned char value);
//     std::vector<std::byte> Read(const void* address, Bytes size);
//     void BeginPass(PlannedArena& arena);  // what goes with a pass on this device
//     void EndPass(PlannedArena& arena);
//     std::vector<std::string> Misuse();    // of the memory's owner; anything fails the case
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Mine, AllocatorConformance, MyHarness);
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/pool/running_pass.h"
#include "livepool/pool/arena_pool.h"

namespace livepool {

// One allocation by what c10 keeps of it: an address, which is the deleter's context too, and the deleter.
using Block = std::unique_ptr<void, void (*)(void*)>;

template <typename Harness>
class AllocatorConformance : public ::testing::Test {
 protected:
  // An allocation with a byte that it was filled with.
  struct Filled {
    Block block;
    Bytes size = 0;
    unsigned char pattern = 0;
  };

  void SetUp() override {
    if (const std::string why_not = Harness::WhyNot(); !why_not.empty()) GTEST_SKIP() << why_not;
    harness_ = std::make_unique<Harness>();
  }
  void TearDown() override {
    if (harness_ == nullptr) return;
    pool().Trim();
    EXPECT_EQ(pool().Stats().live_bytes, 0) << "a slot was lost";
    EXPECT_THAT(harness_->Misuse(), ::testing::IsEmpty());
  }

  ArenaPool& pool() { return harness_->pool(); }
  bool InArena(const void* address) { return pool().Find(address) != nullptr; }

  // `sizes` side by side, allocated by one op, in this order.
  SlotTable TableOf(const std::vector<Bytes>& sizes) {
    const Bytes alignment = pool().backend().Alignment();
    SlotTable table;
    for (const Bytes size : sizes) {
      const Bytes rounded = AlignUp(size, alignment);
      table.allocations.push_back({.size = rounded, .range = static_cast<std::int32_t>(table.ranges.size())});
      table.ranges.push_back({.offset = table.height, .size = rounded});
      table.height += rounded;
    }
    table.first_of_op.push_back(static_cast<std::uint32_t>(table.allocations.size()));
    return table;
  }

  // Runs body(Pass&) while the calling thread's next allocations are planned to have `sizes`.
  template <typename Body>
  void InPass(const std::vector<Bytes>& sizes, Body body) {
    const SlotTable table = TableOf(sizes);
    testing::RunningPass running(pool(), table);
    harness_->BeginPass(running.arena());
    running->BeginOp(0, nullptr);
    body(*running.operator->());
    harness_->EndPass(running.arena());
  }

  // Runs body() outside of a pass and twice inside one, where it allocates exactly `sizes`, in this order, and
  // requests of nothing.
  template <typename Body>
  void Everywhere(const std::vector<Bytes>& sizes, Body body) {
    {
      SCOPED_TRACE("outside of a pass");
      in_pass_ = false;
      body();
    }
    for (const char* const which : {"in a pass", "in the pass after it"}) {
      SCOPED_TRACE(which);
      InPass(sizes, [&](const Pass& pass) {
        in_pass_ = true;
        body();
        in_pass_ = false;
        EXPECT_EQ(pass.hits(), static_cast<std::int64_t>(sizes.size())) << "expected: all that is planned is served";
        EXPECT_EQ(pass.misses(), 0);
      });
    }
  }

  Filled Take(Bytes size) { return FillUp(harness_->Allocate(size), size); }
  Filled FillUp(Block block, Bytes size) {
    const auto pattern = static_cast<unsigned char>(1 + next_pattern_++ % 250);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.get()) % static_cast<std::uintptr_t>(Harness::kAlignment), 0U)
        << size << " bytes at " << block.get() << ", expected a multiple of " << Harness::kAlignment;
    EXPECT_EQ(block.get() == nullptr, size == 0) << size << " bytes";
    if (size > 0) harness_->Fill(block.get(), size, pattern);
    return {.block = std::move(block), .size = size, .pattern = pattern};
  }
  // Its bytes are what they were filled with.
  void ExpectKept(const Filled& filled) {
    if constexpr (Harness::kReadable) {
      const std::vector<std::byte> bytes = harness_->Read(filled.block.get(), filled.size);
      const auto wrong = std::find_if(bytes.begin(), bytes.end(), [&](std::byte b) { return b != std::byte{filled.pattern}; });
      EXPECT_EQ(wrong - bytes.begin(), filled.size)
          << "first wrong byte of " << filled.size << ", expected all to be " << int{filled.pattern};
    }
  }
  // No two share a byte, and those in the arena are where the body expects them.
  void ExpectApart(const std::vector<Filled>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto* const a = static_cast<const std::byte*>(all[i].block.get());
      if (all[i].size > 0) {
        EXPECT_EQ(InArena(a), in_pass_) << all[i].size << " bytes";
      }
      for (std::size_t j = 0; j < i; ++j) {
        const auto* const b = static_cast<const std::byte*>(all[j].block.get());
        EXPECT_TRUE(a + all[i].size <= b || b + all[j].size <= a)
            << "allocations " << j << " and " << i << " share bytes: " << all[j].size << " bytes at " << all[j].block.get()
            << ", " << all[i].size << " at " << all[i].block.get();
      }
    }
  }
  void Free(Filled& filled) {
    ExpectKept(filled);
    filled.block.reset();
  }

  std::unique_ptr<Harness> harness_;
  bool in_pass_ = false;
  std::atomic<unsigned> next_pattern_{0};

  static constexpr std::array<Bytes, 4> kOddSizes{1, 511, 82262, 2_MiB + 1_B};
};
TYPED_TEST_SUITE_P(AllocatorConformance);

// Field fault 2.
TYPED_TEST_P(AllocatorConformance, RequestsOfNothingTakeNothing) {
  this->Everywhere({100, 300}, [&] {
    std::vector<Block> empty;
    const auto nothing = [&] { empty.push_back(this->harness_->Allocate(0)); };
    nothing(), nothing();
    auto a = this->Take(100);
    nothing();
    auto b = this->Take(300);
    nothing();
    for (const Block& each : empty) EXPECT_EQ(each.get(), nullptr);
    empty.erase(empty.begin() + 1);
    empty.erase(empty.begin());
    this->Free(a);
    empty.clear();
    this->Free(b);
    this->harness_->RawFree(this->harness_->RawAllocate(0));
  });
}

// Field fault 17.
TYPED_TEST_P(AllocatorConformance, OddSizesAreAlignedAndApart) {
  const std::vector<Bytes> sizes(this->kOddSizes.begin(), this->kOddSizes.end());
  this->Everywhere(sizes, [&] {
    std::vector<typename TestFixture::Filled> all;
    for (const Bytes size : sizes) all.push_back(this->Take(size));
    this->ExpectApart(all);
    for (auto& each : all) this->Free(each);
  });
}

TYPED_TEST_P(AllocatorConformance, IsFreedInAnyOrder) {
  std::array<std::size_t, 4> order{0, 1, 2, 3};
  const std::vector<Bytes> sizes{511, 64, 4096, 1};
  do {
    SCOPED_TRACE(::testing::PrintToString(order));
    this->Everywhere(sizes, [&] {
      std::vector<typename TestFixture::Filled> all;
      for (const Bytes size : sizes) all.push_back(this->Take(size));
      this->ExpectApart(all);
      for (const std::size_t i : order) this->Free(all[i]);
    });
  } while (std::next_permutation(order.begin(), order.end()));
}

TYPED_TEST_P(AllocatorConformance, IsFreedByOtherThreads) {
  const std::vector<Bytes> sizes{511, 82262, 1, 4096};
  this->Everywhere(sizes, [&] {
    std::vector<typename TestFixture::Filled> all;
    for (const Bytes size : sizes) all.push_back(this->Take(size));
    std::vector<std::thread> threads;
    for (auto& each : all) threads.emplace_back([&] { this->Free(each); });
    for (std::thread& thread : threads) thread.join();
  });
}

// The bytes of what outlives its pass, and its thread, stay its own.
TYPED_TEST_P(AllocatorConformance, OutlivesItsPassAndItsThread) {
  std::vector<typename TestFixture::Filled> left;
  std::thread([&] {
    this->InPass({511, 4096}, [&](const Pass&) {
      left.push_back(this->Take(511));
      left.push_back(this->Take(4096));
    });
  }).join();
  for (const auto& each : left) EXPECT_TRUE(this->InArena(each.block.get()));
  this->pool().Trim();
  this->Everywhere({511, 4096}, [&] {
    std::vector<typename TestFixture::Filled> all;
    all.push_back(this->Take(511));
    all.push_back(this->Take(4096));
    this->ExpectApart(all);
    for (auto& each : all) this->Free(each);
  });
  std::thread([&] { this->Free(left[1]); }).join();
  this->Free(left[0]);
}

TYPED_TEST_P(AllocatorConformance, TheRawPairWorks) {
  const std::vector<Bytes> sizes{1000, 1};
  this->Everywhere(sizes, [&] {
    std::vector<typename TestFixture::Filled> all;
    for (const Bytes size : sizes) all.push_back(this->FillUp({this->harness_->RawAllocate(size), [](void*) {}}, size));
    this->ExpectApart(all);
    for (auto& each : all) {
      this->ExpectKept(each);
      this->harness_->RawFree(each.block.release());
    }
  });
}

// Field fault 7.
TYPED_TEST_P(AllocatorConformance, APassServesItsOwnThreadOnly) {
  this->InPass({100, 100}, [&](const Pass& pass) {
    std::thread([&] {
      auto other = this->Take(100);
      EXPECT_FALSE(this->InArena(other.block.get()));
      this->Free(other);
    }).join();
    EXPECT_EQ(pass.hits() + pass.misses(), 0) << "expected: another thread's allocations are not counted here";
    auto own = this->Take(100);
    EXPECT_TRUE(this->InArena(own.block.get()));
    this->Free(own);
  });
}

// Field fault 3.
TYPED_TEST_P(AllocatorConformance, AfterARefusalTheNextRequestIsServed) {
  constexpr Bytes kTooMuch = Bytes{1} << 50;
  const auto refused = [&] { this->harness_->Allocate(kTooMuch); };
  EXPECT_THROW(refused(), typename TypeParam::Refusal);
  auto outside = this->Take(100);
  this->InPass({100, 300}, [&](const Pass& pass) {
    EXPECT_THROW(refused(), typename TypeParam::Refusal);
    auto planned = this->Take(300);
    EXPECT_TRUE(this->InArena(planned.block.get())) << "expected: the refusal used up one entry of the plan";
    EXPECT_EQ(pass.misses(), 1);
    this->Free(planned);
  });
  this->Free(outside);
}

TYPED_TEST_P(AllocatorConformance, PassesRunOnSeveralThreadsAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kPasses = 50;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, &wrong] {
      for (int round = 0; round < kPasses; ++round) {
        this->InPass({511, 4096}, [&](const Pass&) {
          auto a = this->Take(511);
          auto b = this->Take(4096);
          if (!this->InArena(a.block.get()) || !this->InArena(b.block.get())) ++wrong;
          std::this_thread::yield();
          this->Free(a);
          this->Free(b);
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0) << "expected: each thread is served from an arena of its own";
}

REGISTER_TYPED_TEST_SUITE_P(AllocatorConformance, RequestsOfNothingTakeNothing, OddSizesAreAlignedAndApart,
                            IsFreedInAnyOrder, IsFreedByOtherThreads, OutlivesItsPassAndItsThread, TheRawPairWorks,
                            APassServesItsOwnThreadOnly, AfterARefusalTheNextRequestIsServed,
                            PassesRunOnSeveralThreadsAtOnce);

}  // namespace livepool
