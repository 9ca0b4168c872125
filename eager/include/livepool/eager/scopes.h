// The scopes of one device, by name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "livepool/eager/learnt_passes.h"
#include "livepool/eager/scope_plans.h"

namespace livepool {

// Thread-safe. At most kMaxScopes are remembered; the one that was entered longest ago is forgotten then.
class Scopes {
 public:
  static constexpr std::size_t kMaxScopes = 1024;

  // As for ScopePlans. `saved`: what an earlier process has learnt; a scope begins with what has its name.
  Scopes(Bytes alignment, ScopePlans::Submit submit, std::function<bool()> stop = {},
         const std::vector<LearntPasses>& saved = {});

  // The scope `name`, made at the first call.
  std::shared_ptr<ScopePlans> Of(const std::string& name);
  // By name.
  std::vector<std::pair<std::string, ScopeStats>> Stats() const;
  // What all scopes know now, and what was saved of those that were not entered.
  std::vector<LearntPasses> Learnt() const;

 private:
  struct Entry {
    std::shared_ptr<ScopePlans> scope;
    std::uint64_t entered = 0;
  };

  const Bytes alignment_;
  const ScopePlans::Submit submit_;
  const std::function<bool()> stop_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> scopes_;
  std::map<std::string, std::vector<PassRecord>> saved_;  // of scopes that were not entered yet
  std::uint64_t entries_ = 0;
};

}  // namespace livepool
