#include "livepool/eager/scopes.h"

#include <gtest/gtest.h>

namespace livepool {
namespace {

bool RunNow(const std::function<void()>& job) {
  job();
  return true;
}

TEST(ScopesTest, ANameIsOneScope) {
  Scopes scopes(64, &RunNow);
  const auto a = scopes.Of("a");
  EXPECT_NE(scopes.Of("b"), a);
  EXPECT_EQ(scopes.Of("a"), a);
  EXPECT_EQ(a->name(), "a");
  ASSERT_EQ(scopes.Stats().size(), 2U);
  EXPECT_EQ(scopes.Stats()[1].first, "b");
}

TEST(ScopesTest, TheOneEnteredLongestAgoIsForgotten) {
  Scopes scopes(64, &RunNow);
  const auto first = scopes.Of("first");
  const auto second = scopes.Of("second");
  for (std::size_t i = 2; i < Scopes::kMaxScopes; ++i) scopes.Of(std::to_string(i));
  EXPECT_EQ(scopes.Of("first"), first);
  scopes.Of("one more");
  EXPECT_EQ(scopes.Stats().size(), Scopes::kMaxScopes);
  EXPECT_EQ(scopes.Of("first"), first);
  EXPECT_NE(scopes.Of("second"), second);
}

}  // namespace
}  // namespace livepool
