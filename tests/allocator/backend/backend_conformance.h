// The contract of livepool::Backend as tests. A backend joins with a harness and two lines:
//
//   struct MyHarness {
//     // Whether the bytes of mapped memory can be looked at. Where they cannot (a fake whose addresses are
//     // numbers), the cases about contents are skipped by name and the others check addresses only.
//     static constexpr bool kReadable = true;
//     // Why the backend cannot run on this machine; empty: it can.
//     static std::string WhyNot();
//     Backend& backend();
//     // Asked of whoever owns the memory (kernel, driver), not of the backend.
//     bool IsMapped(const std::byte* address);
//     // The bytes of mapped memory, after all work on the default stream.
//     std::vector<std::byte> Read(const std::byte* address, Bytes size);
//     // From now on there is a limit: returns a size that Map refuses, while single granules still fit.
//     Bytes Exhaust();
//     // Misuse of the memory's owner that was seen so far; anything fails the case.
//     std::vector<std::string> Misuse();
//   };
//   INSTANTIATE_TYPED_TEST_SUITE_P(Mine, BackendConformance, MyHarness);
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "livepool/backend/backend.h"
#include "livepool/base/error.h"

namespace livepool {

template <typename Harness>
class BackendConformance : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why_not = Harness::WhyNot(); !why_not.empty()) GTEST_SKIP() << why_not;
    harness_ = std::make_unique<Harness>();
    granule_ = backend().Granularity();
  }
  void TearDown() override {
    if (harness_ == nullptr) return;
    EXPECT_THAT(harness_->Misuse(), testing::IsEmpty());
  }

  Backend& backend() { return harness_->backend(); }
  void Fill(std::byte* address, Bytes size, int value) {
    backend().Fill(address, size, static_cast<std::byte>(value), nullptr);
  }
  // Every byte of [address, address + size) is `value`. Checks nothing where contents cannot be read.
  void ExpectBytes(const std::byte* address, Bytes size, int value) {
    if constexpr (Harness::kReadable) {
      const std::vector<std::byte> bytes = harness_->Read(address, size);
      const auto wrong =
          std::find_if(bytes.begin(), bytes.end(), [&](std::byte b) { return std::to_integer<int>(b) != value; });
      EXPECT_EQ(wrong - bytes.begin(), size) << "the first wrong byte";
    }
  }
  // One letter for each of the first `count` granules: M mapped, . not.
  std::string Picture(const std::byte* base, Bytes count) {
    std::string picture;
    for (Bytes i = 0; i < count; ++i) picture += harness_->IsMapped(base + i * granule_) ? 'M' : '.';
    return picture;
  }

  std::unique_ptr<Harness> harness_;
  Bytes granule_ = 0;
};
TYPED_TEST_SUITE_P(BackendConformance);

TYPED_TEST_P(BackendConformance, SaysWhatItIs) {
  EXPECT_FALSE(this->backend().Name().empty());
  const Bytes alignment = this->backend().Alignment();
  EXPECT_TRUE(std::has_single_bit(static_cast<std::uint64_t>(this->granule_))) << this->granule_;
  EXPECT_TRUE(std::has_single_bit(static_cast<std::uint64_t>(alignment))) << alignment;
  EXPECT_EQ(this->granule_ % alignment, 0);
}

TYPED_TEST_P(BackendConformance, ReservesAlignedRangesOfAnySize) {
  for (const Bytes size : {1_B, 511_B, 82262_B, 2_MiB + 1_B}) {
    const auto address = reinterpret_cast<std::uintptr_t>(this->backend().Reserve(size));
    EXPECT_EQ(address % static_cast<std::uintptr_t>(this->granule_), 0u) << size;
  }
}

TYPED_TEST_P(BackendConformance, ReservesNoMemory) {
  std::byte* const base = this->backend().Reserve(3 * this->granule_);
  EXPECT_EQ(this->Picture(base, 3), "...");
}

TYPED_TEST_P(BackendConformance, NeverGivesARangeBack) {
  std::vector<std::byte*> bases;
  for (int i = 0; i < 8; ++i) {
    std::byte* const base = this->backend().Reserve(2 * this->granule_);
    for (std::byte* const other : bases)
      EXPECT_TRUE(base >= other + 2 * this->granule_ || other >= base + 2 * this->granule_);
    bases.push_back(base);
    this->backend().Map(base, 2 * this->granule_);
    this->backend().Unmap(base, 2 * this->granule_);
  }
}

TYPED_TEST_P(BackendConformance, RefusesAnImpossibleReservation) {
  for (const Bytes size : {Bytes{1} << 60, std::numeric_limits<Bytes>::max()}) {
    try {
      this->backend().Reserve(size);
      ADD_FAILURE() << size << " bytes were reserved";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.requested(), size);
      EXPECT_THAT(error.what(), testing::HasSubstr(this->backend().Name()));
    }
  }
  EXPECT_NE(this->backend().Reserve(this->granule_), nullptr);
}

TYPED_TEST_P(BackendConformance, MapsExactlyTheRange) {
  std::byte* const base = this->backend().Reserve(5 * this->granule_);
  this->backend().Map(base + this->granule_, 3 * this->granule_);
  EXPECT_EQ(this->Picture(base, 5), ".MMM.");
  this->Fill(base + this->granule_, 3 * this->granule_, 0xA5);
  this->ExpectBytes(base + this->granule_, 3 * this->granule_, 0xA5);
}

TYPED_TEST_P(BackendConformance, UnmapsAnySubRange) {
  std::byte* const base = this->backend().Reserve(6 * this->granule_);
  this->backend().Map(base, 6 * this->granule_);
  this->Fill(base, 6 * this->granule_, 1);
  this->ExpectBytes(base, 6 * this->granule_, 1);  // waits for the fill, as whoever unmaps must
  this->backend().Unmap(base + 2 * this->granule_, this->granule_);
  EXPECT_EQ(this->Picture(base, 6), "MM.MMM");
  this->backend().Unmap(base + 4 * this->granule_, 2 * this->granule_);
  EXPECT_EQ(this->Picture(base, 6), "MM.M..");
  this->ExpectBytes(base, 2 * this->granule_, 1);
  this->ExpectBytes(base + 3 * this->granule_, this->granule_, 1);
  this->backend().Map(base + 2 * this->granule_, this->granule_);
  this->backend().Map(base + 4 * this->granule_, this->granule_);
  this->Fill(base, 5 * this->granule_, 2);
  this->ExpectBytes(base, 5 * this->granule_, 2);
  // Across four mappings, old and new.
  this->backend().Unmap(base, 5 * this->granule_);
  EXPECT_EQ(this->Picture(base, 6), "......");
}

TYPED_TEST_P(BackendConformance, ARefusedMapChangesNothing) {
  const Bytes size = this->harness_->Exhaust();
  std::byte* const base = this->backend().Reserve(this->granule_ + size);
  std::byte* const rest = base + this->granule_;
  this->backend().Map(base, 2 * this->granule_);
  this->Fill(base, this->granule_, 7);
  this->backend().Unmap(rest, this->granule_);  // the refused range begins where memory was before
  for (int i = 0; i < 2; ++i) {
    try {
      this->backend().Map(rest, size);
      ADD_FAILURE() << "mapped " << size << " bytes";
    } catch (const OutOfMemory& error) {
      EXPECT_EQ(error.requested(), size);
      EXPECT_THAT(error.what(),
                  testing::AllOf(testing::HasSubstr(this->backend().Name()), testing::HasSubstr(FormatBytes(size))));
    }
    EXPECT_EQ(this->Picture(base, 4), "M...");
    EXPECT_FALSE(this->harness_->IsMapped(rest + size / 2));
    EXPECT_FALSE(this->harness_->IsMapped(rest + size - 1));
    this->ExpectBytes(base, this->granule_, 7);
  }
  this->backend().Map(rest, this->granule_);
  this->Fill(rest, this->granule_, 8);
  this->ExpectBytes(rest, this->granule_, 8);
}

TYPED_TEST_P(BackendConformance, BytesSurviveUntilTheirUnmap) {
  if constexpr (!TypeParam::kReadable) GTEST_SKIP() << "the contents of this backend's memory cannot be read";
  std::byte* const base = this->backend().Reserve(4 * this->granule_);
  this->backend().Map(base, this->granule_);
  this->Fill(base, this->granule_, 0x11);
  this->backend().Map(base + this->granule_, 3 * this->granule_);
  this->Fill(base + this->granule_, 3 * this->granule_, 0x22);
  this->ExpectBytes(base, this->granule_, 0x11);
  this->backend().Unmap(base + 2 * this->granule_, 2 * this->granule_);
  this->backend().Map(base + 2 * this->granule_, this->granule_);
  this->ExpectBytes(base, this->granule_, 0x11);
  this->ExpectBytes(base + this->granule_, this->granule_, 0x22);
}

TYPED_TEST_P(BackendConformance, FillWritesItsRangeOnly) {
  if constexpr (!TypeParam::kReadable) GTEST_SKIP() << "the contents of this backend's memory cannot be read";
  std::byte* const base = this->backend().Reserve(this->granule_);
  this->backend().Map(base, this->granule_);
  this->Fill(base, this->granule_, 0);
  this->Fill(base + 65, 511, 0xFF);
  this->ExpectBytes(base, 65, 0);
  this->ExpectBytes(base + 65, 511, 0xFF);
  this->ExpectBytes(base + 65 + 511, this->granule_ - 65 - 511, 0);
}

TYPED_TEST_P(BackendConformance, ServesSeveralThreads) {
  constexpr int kThreads = 4;
  std::byte* const base = this->backend().Reserve(kThreads * this->granule_);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this, i, own = base + i * this->granule_] {
      for (int round = 0; round < 10; ++round) {
        this->backend().Map(own, this->granule_);
        this->Fill(own, this->granule_, i + 1);
        this->ExpectBytes(own + this->granule_ - 64, 64, i + 1);
        this->backend().Unmap(own, this->granule_);
        this->backend().Reserve(this->granule_);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(this->Picture(base, kThreads), "....");
}

REGISTER_TYPED_TEST_SUITE_P(BackendConformance, SaysWhatItIs, ReservesAlignedRangesOfAnySize, ReservesNoMemory,
                            NeverGivesARangeBack, RefusesAnImpossibleReservation, MapsExactlyTheRange,
                            UnmapsAnySubRange, ARefusedMapChangesNothing, BytesSurviveUntilTheirUnmap,
                            FillWritesItsRangeOnly, ServesSeveralThreads);

}  // namespace livepool
