#include "livepool/eager/scopes.h"

#include <algorithm>

namespace livepool {

std::shared_ptr<ScopePlans> Scopes::Of(const std::string& name) {
  const std::lock_guard lock(mutex_);
  Entry& entry = scopes_[name];
  entry.entered = ++entries_;
  if (entry.scope == nullptr) entry.scope = std::make_shared<ScopePlans>(name, alignment_, submit_, stop_);
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

}  // namespace livepool
