#include "signature_cache.h"

#include <algorithm>
#include <functional>

namespace livepool {

std::pair<SignatureCache::Ref, CapturedCall> SignatureCache::Find(SignatureKey key) {
  const std::size_t hash = key.tensors.Hash() ^ std::hash<std::string>()(key.structure);
  const std::lock_guard lock(mutex_);
  const auto [begin, end] = by_hash_.equal_range(hash);
  const auto found = std::find_if(begin, end, [&](const auto& each) { return each.second->key == key; });
  Ref signature;
  if (found != end) {
    signature = found->second;
  } else {
    MakeRoomLocked();
    signature = std::make_shared<Signature>(std::move(key));
    by_hash_.emplace(hash, signature);
    in_order_.push_back(signature);
  }
  signature->seen_at = ++clock_;
  return {signature, signature->captured};
}

bool SignatureCache::Sight(Signature& signature, bool planned) {
  const std::lock_guard lock(mutex_);
  ++signature.sightings;
  if (signature.sightings < Due(signature, planned) || signature.captured.graph || !signature.refusal.empty() ||
      signature.being_captured)
    return false;
  signature.being_captured = true;
  return true;
}

// What is dropped dies outside the lock, as a graph's callable may own anything.
void SignatureCache::Captured(Signature& signature, CapturedCall captured) {
  std::vector<CapturedCall> dropped;
  const std::lock_guard lock(mutex_);
  signature.being_captured = false;
  ++signature.captures;
  signature.captured = std::move(captured);
  std::vector<Signature*> with_graphs;
  for (const Ref& each : in_order_) {
    if (each->captured.graph && each.get() != &signature) with_graphs.push_back(each.get());
  }
  std::sort(with_graphs.begin(), with_graphs.end(),
            [](const auto* a, const auto* b) { return a->seen_at < b->seen_at; });
  for (std::size_t i = 0; i + max_graphs_ < with_graphs.size() + 1; ++i) dropped.push_back(DropLocked(*with_graphs[i]));
}

void SignatureCache::Refuse(Signature& signature, const std::string& reason) {
  CapturedCall dropped;
  const std::lock_guard lock(mutex_);
  signature.being_captured = false;
  signature.refusal = reason;
  dropped = DropLocked(signature);
}

bool SignatureCache::Defer(Signature& signature) {
  const std::lock_guard lock(mutex_);
  const bool early = signature.sightings < Due(signature, /*planned=*/false);
  if (early) signature.being_captured = false;
  return early;
}

std::int64_t SignatureCache::Due(const Signature& signature, bool planned) const {
  return (planned ? 1 : capture_after_) << std::min<std::int64_t>(signature.captures, 20);
}

void SignatureCache::Fail(Signature& signature) {
  const std::lock_guard lock(mutex_);
  signature.being_captured = false;
  ++signature.captures;
  signature.sightings = 0;
}

void SignatureCache::Forget(Signature& signature, const ExecGraph* graph) {
  CapturedCall dropped;
  const std::lock_guard lock(mutex_);
  if (signature.captured.graph.get() == graph) dropped = DropLocked(signature);
}

void SignatureCache::Served(Signature& signature) {
  const std::lock_guard lock(mutex_);
  signature.given_up_in_a_row = 0;
}

std::int64_t SignatureCache::GaveUp(Signature& signature) {
  const std::lock_guard lock(mutex_);
  ++signature.given_up;
  return ++signature.given_up_in_a_row;
}

std::vector<Signature> SignatureCache::Snapshot() const {
  const std::lock_guard lock(mutex_);
  std::vector<Signature> copies;
  for (const Ref& each : in_order_) copies.push_back(*each);
  return copies;
}

CapturedCall SignatureCache::DropLocked(Signature& signature) {
  signature.sightings = signature.given_up = signature.given_up_in_a_row = 0;
  return std::exchange(signature.captured, {});
}

void SignatureCache::MakeRoomLocked() {
  if (in_order_.size() < kMostSignatures) return;
  std::vector<std::uint64_t> idle;
  const auto is_idle = [](const Signature& each) { return !each.captured.graph && !each.being_captured; };
  for (const Ref& each : in_order_) {
    if (is_idle(*each)) idle.push_back(each->seen_at);
  }
  std::sort(idle.begin(), idle.end());
  if (idle.empty()) return;
  const std::uint64_t last = idle[std::min(kMostSignatures / 4, idle.size() - 1)];
  const auto goes = [&](const Ref& each) { return is_idle(*each) && each->seen_at <= last; };
  std::erase_if(by_hash_, [&](const auto& each) { return goes(each.second); });
  std::erase_if(in_order_, goes);
}

}  // namespace livepool
