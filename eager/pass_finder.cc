#include "livepool/eager/pass_finder.h"

#include <algorithm>
#include <new>
#include <utility>

#include "livepool/eager/cut_search.h"

namespace livepool {

void PassFinder::Adopt(CutRule rule) {
  window_.reset();
  phase_ = Phase::kSettled;
  SetRule(std::move(rule));
}

bool PassFinder::Next(const Key& key, Site depth) {
  ++since_;
  switch (phase_) {
    case Phase::kAsleep:
      if (since_ < sleep_) return false;
      Watch(kFirstWindow);
      break;
    case Phase::kWatching:
      // Not before the allocation after its last one: the frees between the two belong to the window.
      if (window_->full()) BeginSearch();
      break;
    case Phase::kSearching:
      if (search_->done.load(std::memory_order_acquire)) EndSearch();
      break;
    case Phase::kSettled:
      if (since_ == kReview) Review();
      break;
  }
  if (window_) window_->Add(key, depth);
  context_.Add(key.site);
  return rule_ && rule_->Cuts(depth, context_);
}

void PassFinder::Watch(std::size_t size) {
  phase_ = Phase::kWatching;
  window_size_ = size;
  window_.emplace(size);
}

void PassFinder::BeginSearch() {
  search_ = std::make_shared<Search>();
  const bool will_run = submit_([search = search_, tokens = window_->TakeTokens(), current = rule_] {
    try {
      search->rule = FindCuts(tokens, current);
    } catch (const std::bad_alloc&) {
      search->rule = current;
    }
    search->done.store(true, std::memory_order_release);
  });
  window_.reset();
  phase_ = Phase::kSearching;
  if (!will_run) Sleep();
}

void PassFinder::EndSearch() {
  SetRule(std::exchange(search_->rule, std::nullopt));
  search_.reset();
  if (rule_ ? window_size_ < kSettledWindow : window_size_ < kMaxWindow) {
    Watch(window_size_ * 2);
  } else if (rule_) {
    phase_ = Phase::kSettled;
    since_ = hits_ = 0;
  } else {
    Sleep();
  }
}

void PassFinder::Review() {
  const bool poor = hits_ * 4 < since_;
  since_ = hits_ = 0;
  if (!poor) {
    sleep_ = 0;
    return;
  }
  SetRule(std::nullopt);
  if (sleep_ == 0) {
    sleep_ = kSleep;
    Watch(kFirstWindow);
  } else {
    Sleep();
  }
}

void PassFinder::SetRule(std::optional<CutRule> rule) {
  if (rule == rule_) return;
  rule_ = std::move(rule);
  ++version_;
}

void PassFinder::Sleep() {
  SetRule(std::nullopt);
  window_.reset();
  search_.reset();
  phase_ = Phase::kAsleep;
  sleep_ = std::clamp(sleep_ * 2, kSleep, kMaxSleep);
  since_ = 0;
}

}  // namespace livepool
