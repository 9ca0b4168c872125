#include "plan_json.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "livepool/base/error.h"

namespace livepool {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "livepool plans";

// ---- Writing: rows as columns.

template <typename Rows, typename Get>
Json Column(const Rows& rows, const Get& get) {
  Json column = Json::array();
  for (const auto& row : rows) column.push_back(get(row));
  return column;
}

Json ToJson(const Trace& run) {
  return {{"ops", run.ops},
          {"op", Column(run.allocations, [](const TraceAllocation& each) { return each.op; })},
          {"size", Column(run.allocations, [](const TraceAllocation& each) { return each.size; })},
          {"birth", Column(run.allocations, [](const TraceAllocation& each) { return each.birth; })},
          {"death", Column(run.allocations, [](const TraceAllocation& each) { return each.death; })}};
}

Json ToJson(const Problem& problem, const Plan& plan) {
  return {{"id", Column(problem.buffers, [](const Buffer& each) { return each.id; })},
          {"birth", Column(problem.buffers, [](const Buffer& each) { return each.lifetime.birth; })},
          {"death", Column(problem.buffers, [](const Buffer& each) { return each.lifetime.death; })},
          {"size", Column(problem.buffers, [](const Buffer& each) { return each.size; })},
          {"offset", plan.offsets},
          // The same for all buffers of a device.
          {"alignment", problem.buffers.empty() ? 1 : problem.buffers[0].alignment},
          {"height", plan.height},
          {"lower_bound", plan.lower_bound},
          {"proved_bound", plan.proved_bound},
          {"algorithm", plan.algorithm}};
}

// ---- Reading: nothing is believed.

const Json& Field(const Json& object, const char* name) {
  if (!object.is_object()) throw InvalidInput("there is no object where '" + std::string(name) + "' should be");
  const auto it = object.find(name);
  if (it == object.end()) throw InvalidInput("there is no '" + std::string(name) + "'");
  return *it;
}

std::int64_t ToInt(const Json& value, const char* name) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= kMost : value.is_number_integer();
  if (!fits) throw InvalidInput("'" + std::string(name) + "' is no whole number of 64 bits");
  return value.get<std::int64_t>();
}

std::int32_t ToInt32(const Json& value, const char* name) {
  const std::int64_t number = ToInt(value, name);
  if (number != static_cast<std::int32_t>(number))
    throw InvalidInput("'" + std::string(name) + "' is " + std::to_string(number));
  return static_cast<std::int32_t>(number);
}

std::string Text(const Json& object, const char* name) {
  const Json& value = Field(object, name);
  if (!value.is_string()) throw InvalidInput("'" + std::string(name) + "' is no text");
  return value.get<std::string>();
}

const Json& Array(const Json& object, const char* name) {
  const Json& value = Field(object, name);
  if (!value.is_array()) throw InvalidInput("'" + std::string(name) + "' is no list");
  return value;
}

// A column with as many entries as the first one.
const Json& Array(const Json& object, const char* name, std::size_t size) {
  const Json& column = Array(object, name);
  if (column.size() != size) throw InvalidInput("'" + std::string(name) + "' is not as long as the columns beside it");
  return column;
}

std::vector<std::string> Texts(const Json& object, const char* name) {
  std::vector<std::string> texts;
  for (const Json& each : Array(object, name)) {
    if (!each.is_string()) throw InvalidInput("'" + std::string(name) + "' holds something else than texts");
    texts.push_back(each.get<std::string>());
  }
  return texts;
}

std::vector<std::int64_t> Ints(const Json& object, const char* name) {
  std::vector<std::int64_t> numbers;
  for (const Json& each : Array(object, name)) numbers.push_back(ToInt(each, name));
  return numbers;
}

Trace ReadRun(const Json& json) {
  Trace run{.ops = ToInt32(Field(json, "ops"), "ops")};
  const Json& op = Array(json, "op");
  const Json& size = Array(json, "size", op.size());
  const Json& birth = Array(json, "birth", op.size());
  const Json& death = Array(json, "death", op.size());
  OpIndex last = -1;
  std::int32_t nth = 0;
  for (std::size_t i = 0; i < op.size(); ++i) {
    TraceAllocation& each = run.allocations.emplace_back();
    each = {.size = ToInt(size[i], "size"),
            .op = ToInt32(op[i], "op"),
            .birth = ToInt(birth[i], "birth"),
            .death = ToInt(death[i], "death")};
    if (each.op < 0) continue;
    nth = each.op == last ? nth + 1 : 0;
    last = each.op;
    each.nth = nth;
  }
  return run;
}

void ReadPlan(const Json& json, SavedPlan& saved) {
  const Json& id = Array(json, "id");
  const Json& birth = Array(json, "birth", id.size());
  const Json& death = Array(json, "death", id.size());
  const Json& size = Array(json, "size", id.size());
  const Bytes alignment = ToInt(Field(json, "alignment"), "alignment");
  for (std::size_t i = 0; i < id.size(); ++i) {
    saved.problem.buffers.push_back({.id = ToInt(id[i], "id"),
                                     .lifetime = {.birth = ToInt(birth[i], "birth"), .death = ToInt(death[i], "death")},
                                     .size = ToInt(size[i], "size"),
                                     .alignment = alignment});
  }
  saved.plan = {.offsets = Ints(json, "offset"),
                .height = ToInt(Field(json, "height"), "height"),
                .lower_bound = ToInt(Field(json, "lower_bound"), "lower_bound"),
                .algorithm = Text(json, "algorithm"),
                .proved_bound = ToInt(Field(json, "proved_bound"), "proved_bound")};
}

// Anything else than an object where `line` is none. Nothing of ours is deeper than a column of a table of an entry;
// what is would take many times its own size in memory.
Json Parse(const std::string& line) {
  constexpr int kDepth = 3;
  const auto check = [](int depth, Json::parse_event_t, const Json&) {
    if (depth > kDepth) throw InvalidInput("it is nested too deeply for a file of plans");
    return true;
  };
  return Json::parse(line, check, /*allow_exceptions=*/false);
}

// What is no UTF-8 is replaced, as JSON cannot hold it.
std::string ToLine(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string ToLine(const PlanFileHeader& header) {
  return ToLine(Json{{"format", kFormat},
                     {"version", header.version},
                     {"torch", header.torch},
                     {"state", header.state},
                     {"plans", header.plans}});
}

std::string ToLine(const SavedPlans::Entry& entry) {
  return ToLine(Json{{"signature", entry.signature},
                     {"call", entry.call},
                     {"ops", entry.plan->ops},
                     {"recorded", ToJson(entry.plan->recorded)},
                     {"calibration", ToJson(entry.plan->calibration)},
                     {"plan", ToJson(entry.plan->problem, entry.plan->plan)}});
}

PlanFileHeader ReadHeader(const std::string& line) {
  const Json json = Parse(line);
  const bool ours = json.is_object() && json.contains("format") && json["format"] == kFormat;
  if (!ours) throw InvalidInput("it is no file of livepool's plans");
  PlanFileHeader header{.version = ToInt(Field(json, "version"), "version")};
  if (header.version != kPlanFormat) return header;
  header.torch = Text(json, "torch");
  header.state = Texts(json, "state");
  header.plans = ToInt(Field(json, "plans"), "plans");
  return header;
}

SavedPlans::Entry ReadEntry(const std::string& line) {
  const Json json = Parse(line);
  if (!json.is_object()) throw InvalidInput("it is cut off or damaged");
  auto saved = std::make_shared<SavedPlan>();
  saved->ops = Texts(json, "ops");
  saved->recorded = ReadRun(Field(json, "recorded"));
  saved->calibration = ReadRun(Field(json, "calibration"));
  ReadPlan(Field(json, "plan"), *saved);
  CheckSavedPlan(*saved);
  return {.signature = Text(json, "signature"), .call = Ints(json, "call"), .plan = std::move(saved)};
}

}  // namespace livepool
