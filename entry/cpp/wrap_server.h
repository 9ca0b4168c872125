// Serves calls of something wrapped: by a replay, by a capture, or as it is.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "livepool/saved_plans.h"
#include "livepool/wrap.h"
#include "signature_cache.h"

namespace livepool {

class WrapServer {
 public:
  // Throws InvalidInput if an option is less than 1.
  explicit WrapServer(const WrapOptions& options);

  // Makes the call, which is then run or, if a graph is made of it, run and kept by the graph.
  using MakeCall = std::function<std::shared_ptr<FlatCall>()>;
  struct Done {
    std::shared_ptr<FlatCall> call;   // it holds the result, unless
    std::optional<Tensors> replayed;  // these are its tensors
  };
  // `structure`: of the arguments beside `inputs`. `given`: a replay that cannot be given up may free the inputs at
  // their last use. `state`: asked for if the call is captured. Effects happen once, as in
  // entry/python/livepool/wrapped_forward.py. Throws what the call throws.
  Done Call(const std::string& structure, Tensors inputs, bool given, bool training, const MakeCall& make,
            const std::function<NamedTensors()>& state);

  // Notes that a call runs as it is, as no graph can take its arguments, and says so, once for each reason.
  void NoteRefused(const std::string& reason);

  WrapReport Explain() const;

  // As Wrapped::SavePlans and LoadPlans; `state`: of what is wrapped.
  std::size_t SavePlans(const std::string& path, const NamedTensors& state) const;
  std::size_t LoadPlans(const std::string& path, const NamedTensors& state);

 private:
  Done AsIs(const std::string& reason, const Tensors& inputs, const MakeCall& make);
  Done CaptureCall(Signature& signature, const Tensors& inputs, const MakeCall& make,
                   const std::function<NamedTensors()>& state, std::shared_ptr<const SavedPlan> plan);
  std::shared_ptr<const SavedPlan> PlanFor(const SignatureKey& key) const;
  void Note(const std::string& reason);
  // Handles the exception that is under way in a replay; false: it is the caller's.
  bool GiveUp(Signature& signature, const ExecGraph& graph, std::string& reason);
  void Say(const std::string& what, const std::string& why, const std::string& reason);

  const std::string name_;
  const CaptureOptions::Mode mode_;
  const bool outputs_in_arena_;
  SignatureCache cache_;
  mutable std::mutex mutex_;  // for what follows
  std::int64_t replayed_ = 0;
  std::map<std::string, std::int64_t> as_is_;
  std::set<std::string> said_;
  std::shared_ptr<const SavedPlans> loaded_;
};

// "Float[2, 8], Long[1]" and, if it is not empty, the structure.
std::string ToText(const SignatureKey& key);

}  // namespace livepool
