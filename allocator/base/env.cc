#include "livepool/base/env.h"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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
  if (text == "first") check = {.every = 0, .first = true};
  else if (text == "off") check = {.every = 0, .first = false};
  else if (text.starts_with("every:")) {
    const std::optional<int> every = ParsePositive(text.substr(6));
    if (!every) return false;
    check = {.every = *every, .first = true};
  } else {
    return false;
  }
  return true;
}

// Sets the field that `name` stands for; returns what values are good if `value` is not.
const char* Apply(const std::string& name, const std::string& value, Env& env) {
  if (name == "LIVEPOOL") {
    if (value != "0" && value != "1") return "0 or 1";
    env.enabled = value == "1";
  } else if (name == "LIVEPOOL_FILL") {
    if (value == "none") env.fill = Fill::kNone;
    else if (value == "nan") env.fill = Fill::kNan;
    else if (value == "zero") env.fill = Fill::kZero;
    else return "none, nan or zero";
  } else if (name == "LIVEPOOL_CHECK") {
    if (!ParseCheck(value, env.check)) return "first, every:N or off";
  } else if (name == "LIVEPOOL_SEARCH") {
    if (value != "background" && value != "off") return "background or off";
    env.search = value == "background";
  } else if (name == "LIVEPOOL_LOG") {
    if (value == "off") env.log = LogLevel::kOff;
    else if (value == "warning") env.log = LogLevel::kWarning;
    else if (value == "info") env.log = LogLevel::kInfo;
    else return "off, warning or info";
  } else if (name != "LIVEPOOL_PYTHON" && name != "LIVEPOOL_BUILD_DIR" && name != "LIVEPOOL_SHARED") {
    return "";  // those three are for scripts and tests
  }
  return nullptr;
}

}  // namespace

Env ParseEnv(const std::vector<std::string>& names,
             const std::function<std::optional<std::string>(const std::string&)>& get) {
  Env env;
  for (const std::string& name : names) {
    const std::optional<std::string> value = get(name);
    if (!value) continue;
    const char* wanted = Apply(name, *value, env);
    if (wanted == nullptr) continue;
    env.complaints.push_back(*wanted == '\0'
                                 ? name + " is not a variable of livepool; it is ignored"
                                 : name + "=" + *value + " is ignored: use " + wanted);
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
