#include "livepool/eager/found_passes.h"

#include <algorithm>
#include <utility>

namespace livepool {
namespace {

// No stack reaches further above a frame of it, so that depths are positive.
constexpr std::uintptr_t kAbove = std::uintptr_t{1} << 30;

}  // namespace

FoundStats FoundCounts::Read() const {
  FoundStats stats{.state = state_.load(std::memory_order_relaxed),
                   .allocations = allocations_.load(std::memory_order_relaxed),
                   .passes = {}};
  const std::lock_guard lock(mutex_);
  stats.passes = past_;
  if (scope_ != nullptr) stats.passes.Add(scope_->Stats());
  return stats;
}

FoundPasses::FoundPasses(std::string name, ArenaPool& pool, StreamHandle stream, const void* frame, Fill fill,
                         Submit submit, std::function<bool()> stop, PassDevice device)
    : Server(pool.device()),
      name_(std::move(name)),
      pool_(pool),
      stream_(stream),
      base_(reinterpret_cast<std::uintptr_t>(frame) + kAbove),
      fill_(fill),
      submit_(std::move(submit)),
      stop_(std::move(stop)),
      device_calls_(std::move(device)),
      finder_(submit_) {}

void FoundPasses::Adopt(LearntPasses learnt) {
  if (!learnt.rule) return;
  adopted_ = std::move(learnt);
  finder_.Adopt(*adopted_.rule);
}

LearntPasses FoundPasses::Learnt() const {
  if (version_ != finder_.version()) return adopted_;  // nothing was allocated
  return {.scope = {}, .rule = finder_.rule(), .kinds = scope_ == nullptr ? std::vector<PassRecord>{} : scope_->Learnt()};
}

std::byte* FoundPasses::Serve(Bytes size, StreamHandle stream, const void* frame) {
  asked_ = false;
  // One writer: no atomic read-modify-write.
  counts_->allocations_.store(counts_->allocations_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const bool cut = finder_.Next({.size = size, .site = DepthOf(frame)}, std::exchange(depth_, Token::kNoFree));
  counts_->state_.store(finder_.state(), std::memory_order_relaxed);
  if (version_ != finder_.version()) TakeRule();
  if (cut) Cut();
  std::byte* const address = pass_ == nullptr ? nullptr : pass_->Serve(size, stream, frame);
  asked_ = address == nullptr;
  if (address != nullptr) finder_.NoteAddress(address, /*served=*/true);
  return address;
}

void FoundPasses::TakeRule() {
  version_ = finder_.version();
  End();
  std::shared_ptr<ScopePlans> scope;
  if (finder_.rule()) scope = std::make_shared<ScopePlans>(name_, pool_.backend().Alignment(), submit_, stop_);
  if (scope != nullptr && finder_.rule() == adopted_.rule) scope->Adopt(adopted_.kinds);
  adopted_ = {};
  const std::lock_guard lock(counts_->mutex_);
  if (scope_ != nullptr) {
    counts_->past_.Add(scope_->Stats());
    counts_->past_.kinds = counts_->past_.units = 0;  // they are forgotten
  }
  counts_->scope_ = scope;
  scope_ = std::move(scope);
}

void FoundPasses::Cut() {
  pass_.reset();
  pass_ =
      std::make_unique<EagerPass>(scope_, pool_, stream_, reinterpret_cast<const void*>(base_), fill_, device_calls_);
}

void FoundPasses::OnAlloc(DeviceId device, const void* address, Bytes size, StreamHandle stream) {
  if (!asked_ || !(device == this->device())) return;
  asked_ = false;
  finder_.NoteAddress(address, /*served=*/false);
  if (pass_ != nullptr) pass_->OnAlloc(device, address, size, stream);
}

void FoundPasses::OnFree(DeviceId device, const void* address) {
  if (pass_ != nullptr) pass_->OnFree(device, address);
}

void FoundPasses::OnAnyFree(const void* address, const void* frame) noexcept {
  depth_ = std::min(depth_, DepthOf(frame));
  finder_.NoteFree(address);
}

void FoundPasses::End() {
  if (pass_ == nullptr) return;
  pass_->Abandon();
  pass_.reset();
}

}  // namespace livepool
