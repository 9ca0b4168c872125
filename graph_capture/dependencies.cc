#include "livepool/graph/dependencies.h"

#include <algorithm>

namespace livepool {
namespace {

class Finder {
 public:
  explicit Finder(const OpGraph& graph) : graph_(graph), uses_(graph.storages.size()), maker_(graph.values.size(), -1) {
    found_.successors.resize(graph.ops.size());
    found_.predecessors.resize(graph.ops.size(), 0);
  }

  Dependencies Run() {
    OpIndex last_effect = -1;
    for (std::size_t i = 0; i < graph_.ops.size(); ++i) {
      const auto op = static_cast<OpIndex>(i);
      const Op& node = graph_.ops[i];
      bool ordered = node.effect || node.guard;
      for (const ValueId id : node.inputs) {
        if (const OpIndex maker = maker_[static_cast<std::size_t>(id)]; maker >= 0) Add(maker, op);
        Read(op, graph_.value(id).storage);
      }
      for (const auto* ids : {&node.writes, &node.outputs}) {
        for (const ValueId id : *ids) {
          const StorageId storage = graph_.value(id).storage;
          const StorageKind kind = graph_.storage(storage).kind;
          const bool written = ids == &node.writes;
          // A view of a storage that was made before reads it.
          written || uses_[static_cast<std::size_t>(storage)].writer < 0 ? Write(op, storage) : Read(op, storage);
          ordered = ordered || (written && (kind == StorageKind::kInput || kind == StorageKind::kState));
        }
      }
      for (const ValueId id : node.outputs) maker_[static_cast<std::size_t>(id)] = op;
      if (!ordered) continue;
      if (last_effect >= 0) Add(last_effect, op);
      last_effect = op;
    }
    return std::move(found_);
  }

 private:
  struct Uses {
    OpIndex writer = -1;           // the last one
    std::vector<OpIndex> readers;  // since then
  };

  void Add(OpIndex before, OpIndex after) {
    if (before == after) return;
    std::vector<OpIndex>& successors = found_.successors[static_cast<std::size_t>(before)];
    if (!successors.empty() && successors.back() == after) return;  // `after` only grows
    successors.push_back(after);
    ++found_.predecessors[static_cast<std::size_t>(after)];
  }

  void Read(OpIndex op, StorageId storage) {
    Uses& uses = uses_[static_cast<std::size_t>(storage)];
    if (uses.writer >= 0) Add(uses.writer, op);
    if (uses.readers.empty() || uses.readers.back() != op) uses.readers.push_back(op);
  }

  void Write(OpIndex op, StorageId storage) {
    Uses& uses = uses_[static_cast<std::size_t>(storage)];
    if (uses.writer >= 0) Add(uses.writer, op);
    for (const OpIndex reader : uses.readers) Add(reader, op);
    uses.writer = op;
    uses.readers.clear();
  }

  const OpGraph& graph_;
  std::vector<Uses> uses_;
  std::vector<OpIndex> maker_;  // of each value, so far
  Dependencies found_;
};

}  // namespace

Dependencies Dependencies::Of(const OpGraph& graph) { return Finder(graph).Run(); }

}  // namespace livepool
