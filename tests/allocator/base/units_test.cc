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

TEST(ParseBytesTest, ReadsNumbersWithAndWithoutAUnit) {
  EXPECT_EQ(ParseBytes("8GiB"), 8_GiB);
  EXPECT_EQ(ParseBytes("1.5 GiB"), 1536_MiB);
  EXPECT_EQ(ParseBytes("512MiB"), 512_MiB);
  EXPECT_EQ(ParseBytes("0"), 0);
  EXPECT_EQ(ParseBytes("1073741824"), 1_GiB);
  EXPECT_EQ(ParseBytes("64 B"), 64);
  EXPECT_EQ(ParseBytes(FormatBytes(3_GiB)), 3_GiB);
}

TEST(ParseBytesTest, RefusesEverythingElse) {
  for (const char* text :
       {"", " 8GiB", "8GB", "8G", "gib", "-1", "-0", "8GiBs", "8GiB ", "1e9", "inf", "nan", "8EiB", "0x10"}) {
    EXPECT_EQ(ParseBytes(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace livepool
