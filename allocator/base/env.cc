#include "livepool/base/env.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <utility>

namespace livepool {
namespace {

std::optional<int> ParsePositive(const std::string& text) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value <= 0) return std::nullopt;
  return value;
}

bool ParseCheck(const std::string& text, CheckPolicy& check) {
  if (text == "first")
    check = {.every = 0, .first = true};
  else if (text == "off")
    check = {.every = 0, .first = false};
  else if (text.starts_with("every:")) {
    const std::optional<int> every = ParsePositive(text.substr(6));
    if (!every) return false;
    check = {.every = *every, .first = true};
  } else {
    return false;
  }
  return true;
}

template <typename Enum>
bool Choose(const std::string& text, std::initializer_list<std::pair<const char*, Enum>> choices, Enum& field) {
  for (const auto& [each, value] : choices) {
    if (text != each) continue;
    field = value;
    return true;
  }
  return false;
}

// All variables. `apply` sets the field that the variable stands for; false if the value is not `wanted`.
struct Variable {
  const char* name;
  const char* wanted;
  bool (*apply)(const std::string& value, Env& env);
};

const Variable kVariables[] = {
    {"LIVEPOOL", "0 or 1",
     [](const std::string& value, Env& env) {
       env.serve_eager_code = value == "1";
       return Choose(value, {{"0", false}, {"1", true}}, env.enabled);
     }},
    {"LIVEPOOL_FILL", "none, nan or zero",
     [](const std::string& value, Env& env) {
       return Choose(value, {{"none", Fill::kNone}, {"nan", Fill::kNan}, {"zero", Fill::kZero}}, env.fill);
     }},
    {"LIVEPOOL_CHECK", "first, every:N or off",
     [](const std::string& value, Env& env) { return ParseCheck(value, env.check); }},
    {"LIVEPOOL_SEARCH", "background or off",
     [](const std::string& value, Env& env) {
       return Choose(value, {{"background", true}, {"off", false}}, env.search);
     }},
    {"LIVEPOOL_LOG", "off, warning or info",
     [](const std::string& value, Env& env) {
       return Choose(value, {{"off", LogLevel::kOff}, {"warning", LogLevel::kWarning}, {"info", LogLevel::kInfo}},
                     env.log);
     }},
    {"LIVEPOOL_MEMORY_LIMIT", "a number of bytes, or of KiB, MiB, GiB or TiB, as in 8GiB",
     [](const std::string& value, Env& env) {
       env.memory_limit = ParseBytes(value);
       return env.memory_limit.has_value();
     }},
    {"LIVEPOOL_REPORT", "the name of a file",
     [](const std::string& value, Env& env) {
       env.report = value;
       return !value.empty();
     }},
    {"LIVEPOOL_PLAN_DIR", "the name of a folder",
     [](const std::string& value, Env& env) {
       env.plan_dir = value;
       return !value.empty();
     }},
    // For scripts and tests.
    {"LIVEPOOL_PYTHON", "", [](const std::string&, Env&) { return true; }},
    {"LIVEPOOL_BUILD_DIR", "", [](const std::string&, Env&) { return true; }},
    {"LIVEPOOL_SHARED", "", [](const std::string&, Env&) { return true; }},
};

}  // namespace

Env ParseEnv(const std::vector<std::string>& names,
             const std::function<std::optional<std::string>(const std::string&)>& get) {
  Env env;
  for (const std::string& name : names) {
    const std::optional<std::string> value = get(name);
    if (!value) continue;
    const auto* const variable = std::find_if(std::begin(kVariables), std::end(kVariables),
                                              [&](const Variable& each) { return name == each.name; });
    if (variable == std::end(kVariables)) {
      env.complaints.push_back(name + " is not a variable of livepool; it is ignored");
    } else if (!variable->apply(*value, env)) {
      env.complaints.push_back(name + "=" + *value + " is ignored: use " + variable->wanted);
    }
  }
  return env;
}

const Env& GetEnv() {
  static const Env& env = *[] {
    std::vector<std::string> names;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string name(*entry, std::strcspn(*entry, "="));
      if (name == "LIVEPOOL" || name.starts_with("LIVEPOOL_")) names.push_back(name);
    }
    auto* parsed = new Env(ParseEnv(names, [](const std::string& name) -> std::optional<std::string> {
      const char* value = std::getenv(name.c_str());
      return value == nullptr ? std::nullopt : std::optional<std::string>(value);
    }));
    if (parsed->log != LogLevel::kOff) {
      for (const std::string& line : parsed->complaints) std::fprintf(stderr, "livepool: %s\n", line.c_str());
    }
    return parsed;
  }();
  return env;
}

}  // namespace livepool
