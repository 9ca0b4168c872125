#include "livepool/eager/token_window.h"

#include <gtest/gtest.h>

namespace livepool {
namespace {

const int kMemory[4] = {};

TEST(TokenWindowTest, ADeathCountsTheAllocationsBeforeIt) {
  TokenWindow window(3);
  window.Add({.size = 64, .site = 1}, Token::kNoFree);
  window.NoteAddress(&kMemory[0]);
  window.Add({.size = 128, .site = 2}, 7);
  window.NoteAddress(&kMemory[1]);
  window.NoteFree(&kMemory[0]);
  window.Add({.size = 64, .site = 3}, 5);
  window.NoteAddress(&kMemory[0]);  // the same bytes once more
  EXPECT_TRUE(window.full());
  window.NoteFree(&kMemory[0]);
  window.NoteFree(&kMemory[3]);  // from before the window
  const std::vector<Token> tokens = window.TakeTokens();
  ASSERT_EQ(tokens.size(), 3);
  EXPECT_EQ(tokens[0].death, 2);
  EXPECT_EQ(tokens[1].death, PassRecord::kAlive);
  EXPECT_EQ(tokens[2].death, 3);
  EXPECT_EQ(tokens[1].depth, 7);
  EXPECT_EQ(tokens[1].key, (Key{.size = 128, .site = 2}));
}

}  // namespace
}  // namespace livepool
