#include "livepool/pool/forked.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>

#include "allocator/pool/running_pass.h"
#include "allocator/pool/test_tables.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

using testing::FakePool;
using testing::OneOpEach;
using testing::RunningPass;

// The number of the first of `expectations` that does not hold in a forked child, from 1; 0: all hold.
int FirstBrokenInChild(const std::vector<std::function<bool()>>& expectations) {
  const pid_t child = fork();
  if (child == 0) {
    for (std::size_t i = 0; i < expectations.size(); ++i) {
      if (!expectations[i]()) _exit(static_cast<int>(i) + 1);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool BorrowIsRefused(ArenaPool& pool) {
  try {
    (void)pool.Borrow(64);
  } catch (const ArenasExhausted&) {
    return true;
  }
  return false;
}

TEST(ForkedTest, AChildGetsNoArenaAndTrimsNone) {
  const FakePool fake;
  fake.pool->Return(fake.pool->Borrow(64));
  EXPECT_EQ(FirstBrokenInChild({[] { return InForkedChild(); }, [&] { return BorrowIsRefused(*fake.pool); },
                                [&] { return fake.pool->Trim() == 0; }}),
            0);
  EXPECT_FALSE(InForkedChild());
  EXPECT_GT(fake.pool->Trim(), 0);
}

TEST(ForkedTest, AChildForkedInAPassLeavesItAndFreesWhatItInherited) {
  const FakePool fake;
  RunningPass running(*fake.pool, OneOpEach({{0, 128}}));
  running->BeginOp(0, nullptr);
  std::byte* const slot = running->Serve(128, nullptr);
  std::memset(slot, 7, 128);
  EXPECT_EQ(FirstBrokenInChild({[] { return CurrentThread().pass == nullptr; },
                                [&] { return testing::AllBytesAre(slot, 128, std::byte{7}); },
                                [&] { return fake.pool->Find(slot)->Free(slot), true; }}),
            0);
  EXPECT_EQ(CurrentThread().pass, running.operator->());
  EXPECT_EQ(running.arena().LiveBytes(), 128) << "expected: the child has freed its own copy";
  running.arena().Free(slot);
}

}  // namespace
}  // namespace livepool
