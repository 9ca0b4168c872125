#include "livepool/base/units.h"

#include <gtest/gtest.h>

namespace livepool {
namespace {

TEST(AlignUpTest, RoundsUpToTheNextMultiple) {
  EXPECT_EQ(AlignUp(0, 64), 0);
  EXPECT_EQ(AlignUp(1, 64), 64);
  EXPECT_EQ(AlignUp(64, 64), 64);
  EXPECT_EQ(AlignUp(65, 64), 128);
  EXPECT_EQ(AlignUp(7, 3), 9);  // any positive alignment
}

TEST(LiteralsTest, AreBytes) {
  EXPECT_EQ(3_KiB, 3 * 1024_B);
  EXPECT_EQ(2_MiB, 2048_KiB);
  EXPECT_EQ(1_GiB, 1024_MiB);
}

TEST(FormatBytesTest, PicksTheUnit) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(3_GiB), "3.00 GiB");
  EXPECT_EQ(FormatBytes(-2_MiB), "-2.00 MiB");
}

}  // namespace
}  // namespace livepool
