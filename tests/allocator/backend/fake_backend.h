// A backend for the tests of what is built on backends: small granules, a capacity, failures on demand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "livepool/backend/backend.h"
#include "livepool/base/error.h"

namespace livepool {

// Real host memory, so that slots can be written and read; it is freed with the object. What Unmap takes
// is overwritten, and Map gives memory that is not zero, so that a test notices who relies on old bytes.
class FakeBackend final : public Backend {
 public:
  struct Options {
    Bytes capacity = 64_MiB;  // mapped bytes at most
    Bytes granularity = 4_KiB;
    Bytes alignment = 64_B;
    Bytes address_space = 16_GiB;  // the largest reservation
    std::string name = "fake";
  };
  struct FillCall {
    std::byte* address;
    Bytes size;
    std::byte value;
    StreamHandle stream;
    friend bool operator==(const FillCall&, const FillCall&) = default;
  };
  static constexpr std::byte kFresh{0xCD};  // what Map fills with
  static constexpr std::byte kGone{0xDD};   // what Unmap leaves

  FakeBackend() : FakeBackend(Options()) {}
  explicit FakeBackend(const Options& options) : options_(options) {}

  // The n-th call of Reserve or Map from now (1: the next one) throws OutOfMemory, once.
  void FailNthCall(int n) {
    const std::lock_guard lock(mutex_);
    calls_to_failure_ = n;
  }
  void set_capacity(Bytes capacity) {
    const std::lock_guard lock(mutex_);
    options_.capacity = capacity;
  }

  Bytes mapped() const {
    const std::lock_guard lock(mutex_);
    return static_cast<Bytes>(mapped_.size()) * options_.granularity;
  }
  bool IsMapped(const std::byte* address) const {
    const std::lock_guard lock(mutex_);
    const auto next = mapped_.upper_bound(address);
    return next != mapped_.begin() && address - *std::prev(next) < options_.granularity;
  }
  std::vector<FillCall> fills() const {
    const std::lock_guard lock(mutex_);
    return fills_;
  }
  // Calls that break the contract of Backend; each had no effect.
  std::vector<std::string> misuse() const {
    const std::lock_guard lock(mutex_);
    return misuse_;
  }

  std::string Name() const override { return options_.name; }
  Bytes Granularity() const override { return options_.granularity; }
  Bytes Alignment() const override { return options_.alignment; }

  std::byte* Reserve(Bytes size) override {
    const std::lock_guard lock(mutex_);
    if (FailsNow() || size > options_.address_space) throw OutOfMemory(Name() + ": cannot reserve", size);
    const Bytes rounded = AlignUp(size, options_.granularity);
    const auto alignment = std::align_val_t{static_cast<std::size_t>(options_.granularity)};
    Memory memory(static_cast<std::byte*>(::operator new(static_cast<std::size_t>(rounded), alignment)),
                  Free{alignment});
    std::byte* const base = memory.get();
    reservations_.emplace(base, Reservation{.memory = std::move(memory), .size = rounded});
    return base;
  }

  void Map(std::byte* address, Bytes size) override {
    const std::lock_guard lock(mutex_);
    if (FailsNow() || static_cast<Bytes>(mapped_.size()) * options_.granularity + size > options_.capacity) {
      throw OutOfMemory(Name() + ": no memory for " + FormatBytes(size), size);
    }
    if (!Check("Map", address, size, /*mapped=*/false)) return;
    for (Bytes at = 0; at < size; at += options_.granularity) mapped_.insert(address + at);
    Overwrite(address, size, kFresh);
  }

  void Unmap(std::byte* address, Bytes size) noexcept override {
    const std::lock_guard lock(mutex_);
    if (!Check("Unmap", address, size, /*mapped=*/true)) return;
    for (Bytes at = 0; at < size; at += options_.granularity) mapped_.erase(address + at);
    Overwrite(address, size, kGone);
  }

  void Fill(std::byte* address, Bytes size, std::byte value, StreamHandle stream) noexcept override {
    const std::lock_guard lock(mutex_);
    fills_.push_back({address, size, value, stream});
    const std::byte* const first_page =
        address - reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(options_.granularity);
    for (const std::byte* page = first_page; page < address + size; page += options_.granularity) {
      if (mapped_.contains(page)) continue;
      misuse_.push_back("Fill: not mapped");
      return;
    }
    Overwrite(address, size, value);
  }

 private:
  struct Free {
    std::align_val_t alignment;
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  struct Reservation {
    Memory memory;
    Bytes size = 0;
  };

  bool FailsNow() { return calls_to_failure_ > 0 && --calls_to_failure_ == 0; }

  // The range is made of granules of one reservation, all of them mapped or none.
  bool Check(const std::string& call, const std::byte* address, Bytes size, bool mapped) {
    const auto next = reservations_.upper_bound(address);
    bool good = next != reservations_.begin() && size > 0 && size % options_.granularity == 0;
    if (good) {
      const auto& [base, reservation] = *std::prev(next);
      const Bytes offset = address - base;
      good = offset % options_.granularity == 0 && offset + size <= reservation.size;
    }
    for (Bytes at = 0; good && at < size; at += options_.granularity) good = mapped_.contains(address + at) == mapped;
    if (!good)
      misuse_.push_back(call + ": not reserved, not whole granules, or not all " + (mapped ? "" : "un") + "mapped");
    return good;
  }

  static void Overwrite(std::byte* address, Bytes size, std::byte value) {
    std::memset(address, std::to_integer<int>(value), static_cast<std::size_t>(size));
  }

  mutable std::mutex mutex_;  // guards what follows
  Options options_;
  std::map<const std::byte*, Reservation> reservations_;  // by base address
  std::set<const std::byte*> mapped_;                     // granules
  std::vector<FillCall> fills_;
  std::vector<std::string> misuse_;
  int calls_to_failure_ = 0;  // 0: no failure is due
};

}  // namespace livepool
