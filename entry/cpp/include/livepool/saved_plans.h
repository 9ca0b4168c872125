// The plans of a module's signatures, and the file that they are kept in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "livepool/capture/call_signature.h"
#include "livepool/graph/saved_plan.h"

namespace livepool {

// Values; filled by one thread, then read by any.
class SavedPlans {
 public:
  struct Entry {
    std::string signature;           // of the call, for people, with everything that is no tensor
    std::vector<std::int64_t> call;  // CallSignature::Portable
    std::shared_ptr<const SavedPlan> plan;
  };

  // Reads what Write has written for a module with this `state`. Throws, naming `path`: InvalidInput if it cannot be
  // read or is damaged, InvalidPlan if a plan in it breaks a rule, PlansRefused if it is sound but not for this
  // livepool, torch or module. Whatever the bytes, what it returns can be served.
  static SavedPlans Read(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& state);
  // Writes all plans to a new file, which takes the place of `path` once it is complete. Throws InvalidInput if that
  // fails, or if there are no plans.
  void Write(const std::string& path, const std::vector<std::pair<std::string, at::Tensor>>& state) const;

  // Takes the place of an entry of the same signature and call.
  void Put(std::string signature, std::vector<std::int64_t> call, std::shared_ptr<const SavedPlan> plan);
  // Null if there is none.
  std::shared_ptr<const SavedPlan> Find(const std::string& signature, const CallSignature& call) const;
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  const Entry* FindEntry(const std::string& signature, const std::vector<std::int64_t>& call) const;

  std::vector<Entry> entries_;
};

}  // namespace livepool
