#include "livepool/eager/eager_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/pool/test_tables.h"
#include "eager/test_units.h"
#include "livepool/eager/planning_thread.h"

namespace livepool {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakePool;
using testing::Keys;

const auto* const kEntry = reinterpret_cast<const std::byte*>(std::uintptr_t{1} << 40);

// Stands for an allocator: what is not served has an address of its own.
class EagerPassTest : public ::testing::Test {
 protected:
  struct Tensor {
    std::byte* address = nullptr;
    bool hit = false;
  };

  std::unique_ptr<EagerPass> Begin(PassDevice device = {}) {
    return std::make_unique<EagerPass>(scope_, *fake_.pool, nullptr, kEntry, Fill::kNone, std::move(device));
  }
  Tensor Allocate(EagerPass& pass, const std::string& key) { return Allocate(pass, Keys(key)[0], nullptr); }
  Tensor Allocate(EagerPass& pass, const Key& key, StreamHandle stream) {
    std::byte* const slot = pass.Serve(key.size, stream, kEntry - key.site);
    if (slot != nullptr) return {slot, true};
    upstream_ += 4096;
    auto* const address = reinterpret_cast<std::byte*>(upstream_);
    pass.OnAlloc({}, address, key.size, stream);
    return {address, false};
  }
  void Free(EagerPass* pass, const Tensor& tensor) {
    if (tensor.address == nullptr) return;
    if (tensor.hit) {
      fake_.pool->Find(tensor.address)->Free(tensor.address);
    } else if (pass != nullptr) {
      pass->OnFree({}, tensor.address);
    }
  }
  // Each buffer dies before the next but one is made. True for each hit.
  std::vector<bool> Run(const std::string& keys) {
    std::vector<bool> hits;
    std::vector<Tensor> tensors;
    const auto pass = Begin();
    for (const Key& key : Keys(keys)) {
      if (tensors.size() >= 2) Free(pass.get(), tensors[tensors.size() - 2]);
      tensors.push_back(Allocate(*pass, key, nullptr));
      hits.push_back(tensors.back().hit);
    }
    for (std::size_t i = tensors.size() < 2 ? 0 : tensors.size() - 2; i < tensors.size(); ++i)
      Free(pass.get(), tensors[i]);
    return hits;
  }
  // Until one match is enough for an arena.
  void Learn(const std::string& keys) {
    for (int i = 0; i < 3; ++i) Run(keys);
  }

  FakePool fake_;
  std::shared_ptr<ScopePlans> scope_ = std::make_shared<ScopePlans>("test", 64, [](const std::function<void()>& job) {
    job();
    return true;
  });
  std::uintptr_t upstream_ = std::uintptr_t{1} << 44;
};

const std::string kModel = "a1 b2 c3 d4 e5 f6";

TEST_F(EagerPassTest, TheFirstPassIsRecordedLaterOnesAreServed) {
  EXPECT_THAT(Run(kModel), ElementsAre(false, false, false, false, false, false));
  EXPECT_THAT(Run(kModel), ElementsAre(false, false, false, true, true, true)) << "suspicion: four in a row first";
  EXPECT_THAT(Run(kModel), ElementsAre(true, true, true, true, true, true));
  const ScopeStats stats = scope_->Stats();
  EXPECT_EQ(stats.passes, 3);
  EXPECT_EQ(stats.hits, 9);
  EXPECT_EQ(stats.misses, 9);
  EXPECT_EQ(stats.arena_bytes, 64 * (5 + 6));
  EXPECT_EQ(stats.lower_bound_bytes, 64 * (5 + 6));
  EXPECT_EQ(fake_.pool->Stats().hits, 9);
}

TEST_F(EagerPassTest, WhatEscapesGoesUpstreamNextTime) {
  const auto pass_with_output = [&] {
    const auto pass = Begin();
    Tensor output;
    for (const Key& key : Keys(kModel)) {
      Free(pass.get(), output);
      output = Allocate(*pass, key, nullptr);
    }
    return output;
  };
  Learn(kModel);
  const Tensor first = pass_with_output();
  EXPECT_TRUE(first.hit) << "nobody could know";
  const Tensor second = pass_with_output();
  EXPECT_FALSE(second.hit);
  EXPECT_EQ(scope_->Stats().upstream, 1);
  Free(nullptr, first);
  EXPECT_FALSE(pass_with_output().hit);
}

TEST_F(EagerPassTest, WhatAnEarlierPassKeepsCostsSlotsAndNoSecondArena) {
  Learn(kModel);
  const Bytes held = fake_.pool->Stats().arena_bytes;
  Tensor kept;
  {
    const auto pass = Begin();
    for (const Key& key : Keys(kModel)) {
      const Tensor tensor = Allocate(*pass, key, nullptr);
      if (kept.address == nullptr) {
        kept = tensor;
      } else {
        Free(pass.get(), tensor);
      }
    }
  }
  ASSERT_TRUE(kept.hit);
  EXPECT_THAT(Run(kModel), Contains(true));
  EXPECT_EQ(fake_.pool->Stats().arena_bytes, held);
  EXPECT_EQ(scope_->Stats().upstream, 1) << "what escaped once goes upstream the next time";
  Free(nullptr, kept);
  EXPECT_THAT(Run(kModel), ElementsAre(false, true, true, true, true, true));
}

TEST_F(EagerPassTest, ASlotThatIsStillInUseIsNotServed) {
  Learn(kModel);
  const auto pass = Begin();
  const Tensor late = Allocate(*pass, "a1");
  ASSERT_TRUE(late.hit);
  std::vector<Tensor> others;
  for (const Key& key : Keys("b2 c3 d4 e5 f6")) {
    others.push_back(Allocate(*pass, key, nullptr));
    if (!others.back().hit) continue;
    EXPECT_TRUE(others.back().address >= late.address + 64 || others.back().address + key.size <= late.address);
    Free(pass.get(), others.back());
  }
  Free(pass.get(), late);
}

TEST_F(EagerPassTest, AFreeByAnotherThreadIsAFree) {
  Learn(kModel);
  {
    const auto pass = Begin();
    std::vector<Tensor> tensors;
    for (const Key& key : Keys(kModel)) {
      tensors.push_back(Allocate(*pass, key, nullptr));
      EXPECT_TRUE(tensors.back().hit);
      std::thread([&] { Free(nullptr, tensors.back()); }).join();
    }
  }
  EXPECT_THAT(Run(kModel), ElementsAre(true, true, true, true, true, true)) << "nothing has escaped";
}

TEST_F(EagerPassTest, AnExceptionTeachesNothing) {
  Learn(kModel);
  auto pass = Begin();
  const Tensor held = Allocate(*pass, "a1");  // by the traceback
  pass->Abandon();
  pass.reset();
  Free(nullptr, held);
  EXPECT_THAT(Run(kModel), ElementsAre(true, true, true, true, true, true));
  EXPECT_EQ(scope_->Stats().kinds, 1);
}

TEST_F(EagerPassTest, AnotherStreamIsNotOfThePass) {
  int other = 0;
  Learn(kModel);
  const auto pass = Begin();
  EXPECT_FALSE(Allocate(*pass, Keys("a1")[0], &other).hit);
  const Tensor ours = Allocate(*pass, "a1");
  EXPECT_TRUE(ours.hit) << "the cursor has not moved";
  Free(pass.get(), ours);
}

TEST_F(EagerPassTest, HoldsNoArenaUnlessAPlanFits) {
  Learn(kModel);
  fake_.pool->Trim();
  Run("x1 y1 z1");
  EXPECT_EQ(fake_.backend->mapped(), 0);
}

TEST_F(EagerPassTest, WithoutMemoryForAnArenaEverythingGoesUpstream) {
  Learn(kModel);
  fake_.pool->Trim();
  fake_.backend->set_capacity(0);
  EXPECT_THAT(Run(kModel), ElementsAre(false, false, false, false, false, false));
  fake_.backend->set_capacity(1_MiB);
  EXPECT_THAT(Run(kModel), ElementsAre(true, true, true, true, true, true));
}

TEST_F(EagerPassTest, AsksTheDeviceAroundAnArena) {
  Learn(kModel);
  std::vector<std::string> calls;
  bool may = false;
  const PassDevice device{.may_serve = [&] { return may; },
                          .begin = [&](PlannedArena&) { calls.emplace_back("begin"); },
                          .end = [&](PlannedArena&) { calls.emplace_back("end"); }};
  {
    const auto pass = Begin(device);
    EXPECT_FALSE(Allocate(*pass, "a1").hit);
  }
  EXPECT_THAT(calls, ElementsAre());
  may = true;
  {
    const auto pass = Begin(device);
    Free(pass.get(), Allocate(*pass, "a1"));
  }
  EXPECT_THAT(calls, ElementsAre("begin", "end"));
}

TEST_F(EagerPassTest, PlansThatDivergeTooOftenAreDropped) {
  Learn(kModel);
  ASSERT_EQ(scope_->Stats().units, 1);
  ASSERT_GT(fake_.backend->mapped(), 0);
  // They begin as the model does, and then never repeat.
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string other = "a1";
    for (int j = 0; j < 9; ++j) {
      other += {' ', static_cast<char>('g' + random() % 20), static_cast<char>('1' + random() % 9)};
    }
    Run(other);
  }
  EXPECT_EQ(scope_->Stats().units, 0);
  EXPECT_EQ(fake_.backend->mapped(), 0) << "the arena's memory went with the last plan";
}

TEST_F(EagerPassTest, ShapesShareOneArena) {
  for (int i = 0; i < 3; ++i) {
    Run("a1 b2 c3 d4 e5 f6");
    Run("a2 b4 c6 d8 e9 f9");
  }
  EXPECT_THAT(Run("a1 b2 c3 d4 e5 f6"), ElementsAre(true, true, true, true, true, true));
  EXPECT_THAT(Run("a2 b4 c6 d8 e9 f9"), ElementsAre(true, true, true, true, true, true));
  EXPECT_EQ(scope_->Stats().units, 2);
  EXPECT_EQ(fake_.pool->Stats().arena_bytes, 4_KiB);
}

TEST_F(EagerPassTest, LearnsNothingFromAPassThatIsTooLong) {
  const auto pass = Begin();
  for (std::size_t i = 0; i <= ScopePlans::kMaxPassLength; ++i) Free(pass.get(), Allocate(*pass, "a1"));
  EXPECT_EQ(scope_->Stats().kinds, 0);
}

// Plans are made while passes of two threads run.
TEST(EagerPassThreadsTest, PassesOfSeveralThreads) {
  const FakePool fake({.capacity = 64_MiB}, 1_MiB);
  PlanningThread planner;
  const auto scope = std::make_shared<ScopePlans>(
      "test", 64, [&](std::function<void()> job) { return planner.Submit(std::move(job)); });
  const auto work = [&](char first) {
    for (int round = 0; round < 300; ++round) {
      EagerPass pass(scope, *fake.pool, nullptr, kEntry, Fill::kNone);
      for (int i = 0; i < 40; ++i) {
        const Bytes size = 64 * (1 + (i * 7 + round % 3) % 11);
        const Site site = static_cast<Site>(first + i % 5);
        std::byte* const address = pass.Serve(size, nullptr, kEntry - site);
        if (address == nullptr) continue;
        std::memset(address, first, static_cast<std::size_t>(size));
        EXPECT_TRUE(testing::AllBytesAre(address, size, static_cast<std::byte>(first)));
        fake.pool->Find(address)->Free(address);
      }
    }
  };
  std::thread a(work, 'a');
  std::thread b(work, 'p');
  a.join();
  b.join();
  planner.Stop();
  EXPECT_EQ(scope->Stats().passes, 600);
}

}  // namespace
}  // namespace livepool
