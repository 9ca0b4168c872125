// Runs an event stream against the real serving code, on an arena of numbers, beside an independent checker.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "eager/event_stream.h"
#include "livepool/backend/backend.h"
#include "livepool/eager/found_passes.h"

namespace livepool::testing {

// Addresses without memory behind them: sizes of real models cost nothing.
class NumbersBackend final : public Backend {
 public:
  explicit NumbersBackend(Bytes alignment) : alignment_(alignment) {}
  std::string Name() const override { return "numbers"; }
  Bytes Granularity() const override { return 4_KiB; }
  Bytes Alignment() const override { return alignment_; }
  std::byte* Reserve(Bytes size) override;
  void Map(std::byte*, Bytes) override {}
  void Unmap(std::byte*, Bytes) noexcept override {}
  void Fill(std::byte*, Bytes, std::byte, StreamHandle) noexcept override {}

 private:
  const Bytes alignment_;
};

// Plain upstream: addresses of their own, the last freed one of a size first, as a caching allocator would.
class NumbersUpstream {
 public:
  const std::byte* Allocate(Bytes size);
  void Free(const std::byte* address, Bytes size) { free_[size].push_back(address); }

 private:
  std::uintptr_t next_ = std::uintptr_t{1} << 44;
  std::map<Bytes, std::vector<const std::byte*>> free_;
};

// Knows every live buffer by its bytes; shares no code with what it judges.
class OverlapChecker {
 public:
  // False if a live buffer has one of the bytes.
  bool Add(const std::byte* address, Bytes size);
  void Remove(const std::byte* address) { end_of_.erase(reinterpret_cast<std::uintptr_t>(address)); }

 private:
  std::map<std::uintptr_t, std::uintptr_t> end_of_;
};

// Plannable: freed inside the pass that allocated it.
struct HitCount {
  std::int64_t hits = 0, plannable = 0;
  Bytes hit_bytes = 0, plannable_bytes = 0;

  double Share() const { return plannable == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(plannable); }
  double ByteShare() const {
    return plannable_bytes == 0 ? 0 : static_cast<double>(hit_bytes) / static_cast<double>(plannable_bytes);
  }
  HitCount& operator+=(const HitCount& other);
};

struct SimulationResult {
  std::vector<HitCount> by_occurrence;  // [i]: of the passes that are the i-th of their shape, counted from 0
  std::vector<HitCount> by_pass;
  std::int64_t overlaps = 0;  // buffers that were handed out over a live one: must be 0
  Bytes arena_peak = 0;       // the most that was mapped at once, over all arenas
  ScopeStats scope;

  // From the n-th occurrence of each shape on, counted from 1.
  HitCount From(std::size_t occurrence) const;
  // Of the second half of the passes.
  HitCount SecondHalf() const;
};

// How passes are told apart: by the begin and end events of the stream, as scopes are, or they have to be found.
enum class Passes { kScoped, kFound };

class Simulator {
 public:
  explicit Simulator(Bytes alignment = 64, Passes passes = Passes::kScoped);
  // May be called several times; shapes go on being counted.
  void Run(const EventStream& events);
  SimulationResult Result() const;

 private:
  struct Buffer {
    const std::byte* address = nullptr;
    Bytes size = 0;  // rounded
    std::int64_t pass = 0;
    bool hit = false;
  };
  void Allocate(const StreamEvent& event);
  void Free(const StreamEvent& event);

  const Bytes alignment_;
  ArenaPool& pool_;
  // One of the two serves.
  const std::shared_ptr<ScopePlans> scope_;
  const std::unique_ptr<FoundPasses> found_;
  std::unique_ptr<EagerPass> scoped_;
  Server* server_ = nullptr;  // of what is allocated now, and its sink
  TraceSink* sink_ = nullptr;
  bool in_pass_ = false;
  NumbersUpstream upstream_;
  OverlapChecker checker_;
  std::unordered_map<std::int64_t, Buffer> live_;
  std::map<std::int64_t, std::size_t> occurrences_;  // by shape
  std::size_t occurrence_ = 0;                       // of the running pass
  std::int64_t passes_ = 0;
  std::vector<HitCount> by_occurrence_, by_pass_;
  std::int64_t overlaps_ = 0;
};

}  // namespace livepool::testing
