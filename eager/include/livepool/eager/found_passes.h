// Serves a thread whose code names no scopes: its passes are found.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "livepool/eager/eager_pass.h"
#include "livepool/eager/learnt_passes.h"
#include "livepool/eager/pass_finder.h"
#include "livepool/pool/free_watch.h"

namespace livepool {

struct FoundStats {
  PassFinder::State state = PassFinder::State::kLooking;
  std::int64_t allocations = 0;  // all of the thread that no scope, capture or replay has taken
  ScopeStats passes;             // of what was found
};

// What a thread's passes came to: read by any thread, and still there when the thread has ended.
class FoundCounts {
 public:
  FoundStats Read() const;

 private:
  friend class FoundPasses;
  std::atomic<PassFinder::State> state_{PassFinder::State::kLooking};
  std::atomic<std::int64_t> allocations_{0};
  mutable std::mutex mutex_;           // guards what follows
  ScopeStats past_;                    // of rules that are given up
  std::shared_ptr<ScopePlans> scope_;  // null: no rule yet
};

// From construction to destruction, used by one thread, whose allocations and frees it hears of (thread_state.h,
// free_watch.h). A pass is an EagerPass: it goes from one cut of the PassFinder to the next, so the last one of a
// program does not end before the thread does, or End.
class FoundPasses final : public Server, public TraceSink, public FreeWatch {
 public:
  using Submit = ScopePlans::Submit;

  // `frame`: any address of the thread's stack. `submit`, `stop`: as for ScopePlans. `pool` lives for ever.
  FoundPasses(std::string name, ArenaPool& pool, StreamHandle stream, const void* frame, Fill fill, Submit submit,
              std::function<bool()> stop = {}, PassDevice device = {});
  FoundPasses(const FoundPasses&) = delete;
  FoundPasses& operator=(const FoundPasses&) = delete;

  // Begins with what an earlier process has learnt. Before the thread allocates; nothing without a rule.
  void Adopt(LearntPasses learnt);
  // What is known now, for a later process; without a rule there is nothing. By the thread.
  LearntPasses Learnt() const;

  std::byte* Serve(Bytes size, StreamHandle stream, const void* frame) override;
  PlannedArena* arena() const override { return pass_ == nullptr ? nullptr : pass_->arena(); }
  Bytes height() const override { return pass_ == nullptr ? 0 : pass_->height(); }
  void OnAlloc(DeviceId device, const void* address, Bytes size, StreamHandle stream) override;
  void OnFree(DeviceId device, const void* address) override;
  void OnAnyFree(const void* address, const void* frame) noexcept override;

  // Ends the running pass, and nothing is learnt from it. The next one begins at the next cut.
  void End();
  std::shared_ptr<const FoundCounts> counts() const { return counts_; }

 private:
  Site DepthOf(const void* frame) const { return static_cast<Site>(base_ - reinterpret_cast<std::uintptr_t>(frame)); }
  void TakeRule();
  void Cut();

  const std::string name_;
  ArenaPool& pool_;
  const StreamHandle stream_;
  const std::uintptr_t base_;  // above every frame of the thread
  const Fill fill_;
  const Submit submit_;
  const std::function<bool()> stop_;
  const PassDevice device_calls_;
  PassFinder finder_;
  std::uint64_t version_ = 0;  // of the finder's rule that is in use
  Site depth_ = Token::kNoFree;
  bool asked_ = false;  // upstream will report an address
  std::shared_ptr<FoundCounts> counts_ = std::make_shared<FoundCounts>();
  LearntPasses adopted_;  // its kinds are for the first rule
  std::shared_ptr<ScopePlans> scope_;
  std::unique_ptr<EagerPass> pass_;  // null: no cut yet
};

}  // namespace livepool
