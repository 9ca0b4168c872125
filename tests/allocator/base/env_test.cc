#include "livepool/base/env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace livepool {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Env Parse(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> names;
  for (const auto& [name, value] : variables) names.push_back(name);
  return ParseEnv(names, [&](const std::string& name) { return std::optional(variables.at(name)); });
}

TEST(EnvTest, DefaultsWithoutVariables) {
  const Env env = Parse({});
  EXPECT_TRUE(env.enabled);
  EXPECT_TRUE(env.search);
  EXPECT_EQ(env.fill, Fill::kNone);
  EXPECT_EQ(env.check, (CheckPolicy{.every = 0, .first = true}));
  EXPECT_EQ(env.memory_limit, std::nullopt);
  EXPECT_THAT(env.complaints, IsEmpty());
}

TEST(EnvTest, EveryVariableIsUnderstood) {
  const Env env = Parse({{"LIVEPOOL", "0"},
                         {"LIVEPOOL_FILL", "nan"},
                         {"LIVEPOOL_CHECK", "every:7"},
                         {"LIVEPOOL_LOG", "info"},
                         {"LIVEPOOL_MEMORY_LIMIT", "8GiB"},
                         {"LIVEPOOL_REPORT", "report.json"},
                         {"LIVEPOOL_SEARCH", "off"}});
  EXPECT_EQ(env.report, "report.json");
  EXPECT_FALSE(env.serve_eager_code);
  EXPECT_EQ(env.memory_limit, 8_GiB);
  EXPECT_FALSE(env.enabled);
  EXPECT_EQ(env.fill, Fill::kNan);
  EXPECT_EQ(env.check, (CheckPolicy{.every = 7, .first = true}));
  EXPECT_EQ(env.log, LogLevel::kInfo);
  EXPECT_FALSE(env.search);
  EXPECT_THAT(env.complaints, IsEmpty());
  EXPECT_EQ(Parse({{"LIVEPOOL_CHECK", "off"}}).check, (CheckPolicy{.every = 0, .first = false}));
  EXPECT_EQ(Parse({{"LIVEPOOL_FILL", "zero"}}).fill, Fill::kZero);
  EXPECT_TRUE(Parse({{"LIVEPOOL_SEARCH", "background"}}).search);
}

TEST(EnvTest, EagerCodeIsServedOnRequestOnly) {
  EXPECT_FALSE(Parse({}).serve_eager_code);
  EXPECT_TRUE(Parse({{"LIVEPOOL", "1"}}).serve_eager_code);
  EXPECT_TRUE(Parse({{"LIVEPOOL", "1"}}).enabled);
  const Env bad = Parse({{"LIVEPOOL", "on"}});
  EXPECT_TRUE(bad.enabled);
  EXPECT_FALSE(bad.serve_eager_code);
  EXPECT_THAT(bad.complaints, ElementsAre("LIVEPOOL=on is ignored: use 0 or 1"));
}

TEST(EnvTest, AReportNeedsAName) {
  EXPECT_THAT(Parse({{"LIVEPOOL_REPORT", ""}}).complaints,
              ElementsAre("LIVEPOOL_REPORT= is ignored: use the name of a file"));
}

TEST(EnvTest, ABadValueIsNamedAndLeavesTheDefault) {
  const Env env = Parse({{"LIVEPOOL_FILL", "NaN"}});
  EXPECT_EQ(env.fill, Fill::kNone);
  EXPECT_THAT(env.complaints, ElementsAre("LIVEPOOL_FILL=NaN is ignored: use none, nan or zero"));
}

TEST(EnvTest, ABadMemoryLimitIsNoLimit) {
  const Env env = Parse({{"LIVEPOOL_MEMORY_LIMIT", "8GB"}});
  EXPECT_EQ(env.memory_limit, std::nullopt);
  EXPECT_THAT(env.complaints, ElementsAre("LIVEPOOL_MEMORY_LIMIT=8GB is ignored: use a number of bytes, or of KiB, "
                                          "MiB, GiB or TiB, as in 8GiB"));
}

TEST(EnvTest, CheckNeedsAPositiveNumber) {
  for (const char* value : {"every:", "every:0", "every:-1", "every:2x", "sometimes", "every:99999999999"}) {
    const Env env = Parse({{"LIVEPOOL_CHECK", value}});
    EXPECT_EQ(env.check, CheckPolicy{}) << value;
    EXPECT_EQ(env.complaints.size(), 1u) << value;
  }
}

TEST(EnvTest, AnUnknownVariableIsNamed) {
  EXPECT_THAT(Parse({{"LIVEPOOL_FIL", "nan"}}).complaints,
              ElementsAre("LIVEPOOL_FIL is not a variable of livepool; it is ignored"));
}

}  // namespace
}  // namespace livepool
