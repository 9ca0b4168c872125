#include "livepool/eager/scopes.h"

#include <algorithm>

namespace livepool {

Scopes::Scopes(Bytes alignment, ScopePlans::Submit submit, std::function<bool()> stop,
               const std::vector<LearntPasses>& saved)
    : alignment_(alignment), submit_(std::move(submit)), stop_(std::move(stop)) {
  for (const LearntPasses& each : saved) saved_.emplace(each.scope, each.kinds);
}

std::shared_ptr<ScopePlans> Scopes::Of(const std::string& name) {
  const std::lock_guard lock(mutex_);
  Entry& entry = scopes_[name];
  entry.entered = ++entries_;
  if (entry.scope == nullptr) {
    entry.scope = std::make_shared<ScopePlans>(name, alignment_, submit_, stop_);
    if (const auto saved = saved_.extract(name)) entry.scope->Adopt(saved.mapped());
  }
  std::shared_ptr<ScopePlans> scope = entry.scope;
  if (scopes_.size() > kMaxScopes) {
    scopes_.erase(std::min_element(scopes_.begin(), scopes_.end(),
                                   [](const auto& a, const auto& b) { return a.second.entered < b.second.entered; }));
  }
  return scope;
}

std::vector<std::pair<std::string, ScopeStats>> Scopes::Stats() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, ScopeStats>> stats;
  for (const auto& [name, entry] : scopes_) stats.emplace_back(name, entry.scope->Stats());
  return stats;
}

std::vector<LearntPasses> Scopes::Learnt() const {
  const std::lock_guard lock(mutex_);
  std::vector<LearntPasses> learnt;
  for (const auto& [name, entry] : scopes_) learnt.push_back({.scope = name, .rule = {}, .kinds = entry.scope->Learnt()});
  for (const auto& [name, kinds] : saved_) learnt.push_back({.scope = name, .rule = {}, .kinds = kinds});
  return learnt;
}

}  // namespace livepool
