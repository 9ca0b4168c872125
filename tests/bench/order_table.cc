// Reads exec graphs, one JSON object a line, and prints a table: what is alive at once in the recorded order of the ops
// and in the order that FindMemoryOrder finds, both without and with in-place slots. MiB; needs no torch.
//   zcat graphs.jsonl.gz | order_table
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "livepool/graph/memory_order.h"
#include "livepool/graph/packing.h"
#include "livepool/plan/planner.h"

namespace livepool {
namespace {

using Json = nlohmann::json;
constexpr Bytes kAlignment = 512;

Bytes SizeOf(const std::string& dtype) {
  static const std::map<std::string, Bytes> sizes{{"Half", 2},   {"BFloat16", 2}, {"Float", 4}, {"Int", 4}, {"Long", 8},
                                                  {"Double", 8}, {"Bool", 1},     {"Byte", 1},  {"Char", 1}};
  return sizes.at(dtype);
}

PassMemory Read(const Json& json) {
  PassMemory pass;
  OpGraph& graph = pass.graph;
  const Json& buffers = json.at("buffers");
  for (const Json& buffer : buffers) graph.storages.push_back({.size = buffer.at("size").get<Bytes>()});
  graph.values.resize(json.at("values").size());
  std::vector<bool> holds_tensor(buffers.size(), false);
  for (const auto& [name, description] : json.at("values").items()) {
    Value& value = graph.values.at(std::stoul(name));
    const int buffer = description.value("ev", -1);
    if (buffer >= 0) {
      holds_tensor[static_cast<std::size_t>(buffer)] = true;
      value.storage = buffer;
    } else {  // a weight, or a view of one
      value.storage = static_cast<StorageId>(graph.storages.size());
      graph.storages.push_back({.kind = StorageKind::kState});
    }
    if (!description.contains("dtype")) continue;
    const auto dtype = description.at("dtype").get<std::string>();
    value.element_size = SizeOf(dtype);
    value.dtype = static_cast<std::int32_t>(std::hash<std::string>()(dtype) & 0xFFFF);
    value.sizes = description.at("sizes").get<std::vector<std::int64_t>>();
    value.strides = description.at("strides").get<std::vector<std::int64_t>>();
    value.storage_offset = description.at("offset").get<std::int64_t>();
  }
  for (const Json& op : json.at("ops")) {
    Op& made =
        graph.ops.emplace_back(Op{.name = op.at("op").get<std::string>(), .pointwise = op.at("pw").get<int>() != 0});
    for (const auto& [name, ids] : {std::pair{"in", &made.inputs}, {"out", &made.outputs}}) {
      for (const Json& id : op.at(name)) {
        if (id.get<ValueId>() >= 0) ids->push_back(id.get<ValueId>());  // -1: none
      }
    }
    if (op.at("mutates").get<int>() != 0 && !made.inputs.empty()) made.writes = {made.inputs[0]};
    made.effect = made.outputs.empty();
  }
  graph.outputs = json.at("outputs").get<std::vector<ValueId>>();

  // Times of the buffers count allocations and frees. Inside each op both are kept; tensors die by the graph.
  std::multimap<Time, std::pair<TraceEvent::Kind, std::size_t>> by_time;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    by_time.insert({buffers[i].at("birth").get<Time>(), {TraceEvent::Kind::kAlloc, i}});
    if (!holds_tensor[i]) by_time.insert({buffers[i].at("death").get<Time>(), {TraceEvent::Kind::kFree, i}});
  }
  std::vector<std::vector<std::pair<TraceEvent::Kind, std::size_t>>> inside(graph.ops.size());
  for (const auto& [time, event] : by_time)
    inside.at(buffers[event.second].at("op").get<std::size_t>()).push_back(event);
  std::vector<AllocationIndex> index(buffers.size());
  std::vector<std::vector<std::size_t>> dies_after(graph.ops.size());
  const std::vector<OpIndex> last_use = graph.LastUseOfStorages();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (holds_tensor[i] && last_use[i] >= 0 && static_cast<std::size_t>(last_use[i]) < graph.ops.size())
      dies_after[static_cast<std::size_t>(last_use[i])].push_back(i);
  }
  Trace& trace = pass.trace;
  const auto now = [&] { return static_cast<Time>(trace.events.size()); };
  const auto free = [&](std::size_t buffer) {
    trace.allocations[static_cast<std::size_t>(index[buffer])].death = now();
    trace.events.push_back({TraceEvent::Kind::kFree, index[buffer]});
  };
  for (std::size_t op = 0; op < graph.ops.size(); ++op) {
    trace.events.push_back({TraceEvent::Kind::kOpBegin, static_cast<OpIndex>(op)});
    for (const auto& [kind, buffer] : inside[op]) {
      if (kind == TraceEvent::Kind::kFree) {
        free(buffer);
        continue;
      }
      index[buffer] = static_cast<AllocationIndex>(trace.allocations.size());
      trace.allocations.push_back({.size = graph.storages[buffer].size,
                                   .op = static_cast<OpIndex>(op),
                                   .birth = now(),
                                   .death = TraceAllocation::kNeverFreed});
      pass.storage_of.push_back(holds_tensor[buffer] ? static_cast<StorageId>(buffer) : -1);
      trace.events.push_back({TraceEvent::Kind::kAlloc, index[buffer]});
    }
    trace.events.push_back({TraceEvent::Kind::kOpEnd, static_cast<OpIndex>(op)});
    for (const std::size_t buffer : dies_after[op]) free(buffer);
  }
  trace.ops = static_cast<std::int32_t>(graph.ops.size());
  return pass;
}

double Mebibytes(Bytes bytes) { return static_cast<double>(bytes) / (1 << 20); }

Bytes ArenaOf(const PassMemory& pass, bool in_place) {
  const std::vector<BufferLifetime> lifetimes = ComputeLifetimes(pass.graph, pass.trace, pass.storage_of);
  std::vector<InPlacePair> pairs;
  if (in_place) pairs = FindInPlacePairs(pass.graph, lifetimes, pass.trace);
  return MakePlan(MakePacking(lifetimes, pairs, pass.trace, kAlignment).problem).height;
}

void PrintRow(const std::string& model, const PassMemory& pass) {
  std::printf("| %-22s | %5zu |", model.c_str(), pass.graph.ops.size());
  for (const bool in_place : {false, true}) {
    const auto start = std::chrono::steady_clock::now();
    const std::optional<OpOrder> order = FindMemoryOrder(pass, 0, in_place, kAlignment);
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    const PassMemory found = order ? InOrder(pass, *order).value() : pass;
    const Bytes before = BoundOf(pass, in_place, kAlignment);
    const Bytes after = BoundOf(found, in_place, kAlignment);
    std::printf(" %8.1f | %8.1f | %8.1f | %5.3f | %5.1f |", Mebibytes(before), Mebibytes(after),
                Mebibytes(ArenaOf(found, in_place)), static_cast<double>(after) / static_cast<double>(before), ms);
  }
  std::printf("\n");
}

}  // namespace
}  // namespace livepool

int main() {
  std::printf(
      "|                        |       | without in-place slots                          | with in-place slots        "
      "                     |\n");
  std::printf(
      "| model                  |   ops |    bound |  ordered |    arena | ratio |    ms |    bound |  ordered |    "
      "arena | ratio |    ms |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  int lines = 0;
  for (std::string line; std::getline(std::cin, line); ++lines) {
    const nlohmann::json json = nlohmann::json::parse(line);
    livepool::PrintRow(json.at("model").get<std::string>(), livepool::Read(json.at("graph")));
  }
  return lines > 0 ? 0 : 1;
}
