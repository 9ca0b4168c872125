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

#include "livepool/eager/scope_plans.h"

namespace livepool {

// Thread-safe. At most kMaxScopes are remembered; the one that was entered longest ago is forgotten then.
class Scopes {
 public:
  static constexpr std::size_t kMaxScopes = 1024;

  // As for ScopePlans.
  Scopes(Bytes alignment, ScopePlans::Submit submit, std::function<bool()> stop = {})
      : alignment_(alignment), submit_(std::move(submit)), stop_(std::move(stop)) {}

  // The scope `name`, made at the first call.
  std::shared_ptr<ScopePlans> Of(const std::string& name);
  // By name.
  std::vector<std::pair<std::string, ScopeStats>> Stats() const;

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
  std::uint64_t entries_ = 0;
};

}  // namespace livepool
