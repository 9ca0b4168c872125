// Which signature of something wrapped has a graph, which waits for one, and which never gets one.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flat_call.h"
#include "livepool/capture/call_signature.h"
#include "livepool/capture/exec_graph.h"

namespace livepool {

struct SignatureKey {
  std::string structure;  // of the arguments, with everything that is no tensor
  CallSignature tensors;
  friend bool operator==(const SignatureKey&, const SignatureKey&) = default;
};

struct CapturedCall {
  std::shared_ptr<ExecGraph> graph;
  std::shared_ptr<FlatCall> call;
};

// The fields change under the cache's lock only.
struct Signature {
  explicit Signature(SignatureKey the_key) : key(std::move(the_key)) {}
  const SignatureKey key;
  CapturedCall captured;       // graph is null if there is none
  std::string refusal;         // why it never gets a graph (again)
  std::int64_t sightings = 0;  // calls without a graph since it last had one
  std::int64_t captures = 0;
  bool being_captured = false;
  std::int64_t given_up = 0;  // replays, since the capture
  std::int64_t given_up_in_a_row = 0;
  std::uint64_t seen_at = 0;
};

// The same rules as entry/python/livepool/signature_cache.py, where they are explained: a signature is captured at
// its `capture_after`-th sighting, and at twice as many each time that its graph was dropped; of all graphs the
// `max_graphs` that were used most recently stay.
class SignatureCache {
 public:
  using Ref = std::shared_ptr<Signature>;

  SignatureCache(std::size_t max_graphs, std::int64_t capture_after)
      : max_graphs_(max_graphs), capture_after_(capture_after) {}

  // The signature, made if it is new, and its graph, if it has one.
  std::pair<Ref, CapturedCall> Find(SignatureKey key);
  // Notes a call that no graph serves; `planned`: there is a saved plan for it, so that the first one is captured.
  // True: the caller captures it, and then calls Captured, Refuse or Fail.
  bool Sight(Signature& signature, bool planned);
  void Captured(Signature& signature, CapturedCall captured);
  void Refuse(Signature& signature, const std::string& reason);
  // After a refusal: true if the capture came before its time, because of a saved plan. The signature was only seen
  // then.
  bool Defer(Signature& signature);
  void Fail(Signature& signature);
  // Drops the graph, unless the signature has another one by now.
  void Forget(Signature& signature, const ExecGraph* graph);
  void Served(Signature& signature);
  // Counts a replay that was given up; returns how many were, one after the other.
  std::int64_t GaveUp(Signature& signature);

  // Copies, in the order of the first sighting.
  std::vector<Signature> Snapshot() const;

 private:
  static CapturedCall DropLocked(Signature& signature);
  void MakeRoomLocked();
  std::int64_t Due(const Signature& signature, bool planned) const;

  static constexpr std::size_t kMostSignatures = 1024;

  const std::size_t max_graphs_;
  const std::int64_t capture_after_;
  mutable std::mutex mutex_;
  std::uint64_t clock_ = 0;
  std::unordered_multimap<std::size_t, Ref> by_hash_;
  std::vector<Ref> in_order_;
};

}  // namespace livepool
