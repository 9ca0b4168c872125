// Finds where the passes of a thread begin that does not say so itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "livepool/eager/cut_rule.h"
#include "livepool/eager/token_window.h"

namespace livepool {

// Note [When is looked for passes]
// The thread's allocations are recorded in windows of kFirstWindow, twice as many, ... and each window is searched
// beside the program (cut_search.h). A rule holds from then on; larger windows may bring a better one, until
// kSettledWindow. From then on nothing is recorded, and each kReview allocations are looked at: if less than a quarter
// of them was served, the rule is given up, and the search begins again: the first time at once, then after kSleep
// allocations, twice as many, ... kMaxSleep; during which an allocation costs a counter. The same where no window up to
// kMaxWindow has brought a rule. So a program that does not repeat pays for recording less than a tenth of the time.
// Used by one thread; only the search is another's.
class PassFinder {
 public:
  // Runs a job some time later, or at once; false: it will not run.
  using Submit = std::function<bool(std::function<void()>)>;
  enum class State : std::uint8_t { kLooking, kServing, kAsleep };

  static constexpr std::size_t kFirstWindow = 512;  // allocations, as the next ones
  static constexpr std::size_t kSettledWindow = 1 << 13;
  static constexpr std::size_t kMaxWindow = 1 << 15;
  static constexpr std::uint64_t kReview = 1 << 13;
  static constexpr std::uint64_t kSleep = 1 << 19;
  static constexpr std::uint64_t kMaxSleep = 1 << 24;

  explicit PassFinder(Submit submit) : submit_(std::move(submit)) { Watch(kFirstWindow); }

  // Begins with the rule that an earlier process has found, as if it had just been settled. Before all else.
  void Adopt(CutRule rule);
  // An allocation is about to be made; `depth` as in Token. True: a pass begins with it.
  bool Next(const Key& key, Site depth);
  // Where that allocation lies, and whether that is a slot.
  void NoteAddress(const void* address, bool served) {
    hits_ += served ? 1 : 0;
    if (window_) window_->NoteAddress(address);
  }
  void NoteFree(const void* address) noexcept {
    if (window_) window_->NoteFree(address);
  }

  const std::optional<CutRule>& rule() const { return rule_; }
  // Counts the changes of rule().
  std::uint64_t version() const { return version_; }
  State state() const { return phase_ == Phase::kAsleep ? State::kAsleep : rule_ ? State::kServing : State::kLooking; }

 private:
  enum class Phase : std::uint8_t { kWatching, kSearching, kSettled, kAsleep };
  struct Search {
    std::atomic<bool> done{false};
    std::optional<CutRule> rule;
  };

  void Watch(std::size_t size);
  void BeginSearch();
  void EndSearch();
  void Review();
  void SetRule(std::optional<CutRule> rule);
  void Sleep();

  const Submit submit_;
  Phase phase_ = Phase::kWatching;
  std::optional<TokenWindow> window_;  // in kWatching only
  std::size_t window_size_ = 0;
  std::shared_ptr<Search> search_;  // in kSearching only
  std::optional<CutRule> rule_;
  std::uint64_t version_ = 0;
  SiteContext context_;
  std::uint64_t since_ = 0;  // allocations since the phase began, or since the last review
  std::uint64_t hits_ = 0;   // of these
  std::uint64_t sleep_ = 0;  // how long the next sleep is
};

}  // namespace livepool
