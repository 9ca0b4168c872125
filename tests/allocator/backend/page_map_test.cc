#include "livepool/backend/page_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "livepool/base/error.h"

namespace livepool {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::byte* At(std::uintptr_t number) { return reinterpret_cast<std::byte*>(number); }

class PageMapTest : public testing::Test {
 protected:
  PageMapTest() { map_.AddReservation(At(1000), 40); }
  PageMap map_{10};
};

TEST_F(PageMapTest, StartsWithoutMemory) { EXPECT_THAT(map_.Missing(At(1010), 20), ElementsAre(At(1010), At(1020))); }

TEST_F(PageMapTest, RemembersPagesOneByOne) {
  map_.Set(At(1010), 20, true);
  EXPECT_THAT(map_.Missing(At(1000), 40), ElementsAre(At(1000), At(1030)));
  map_.Set(At(1020), 10, false);
  EXPECT_THAT(map_.Missing(At(1010), 20), ElementsAre(At(1020)));
}

TEST_F(PageMapTest, KeepsReservationsApart) {
  map_.AddReservation(At(1040), 20);  // directly behind the first
  map_.Set(At(1040), 20, true);
  EXPECT_THAT(map_.Missing(At(1030), 10), ElementsAre(At(1030)));
  EXPECT_THAT(map_.Missing(At(1040), 20), IsEmpty());
}

TEST_F(PageMapTest, RefusesRangesOutsideOneReservation) {
  EXPECT_THROW(map_.Missing(At(990), 10), Error);
  EXPECT_THROW(map_.Missing(At(1030), 20), Error);
  EXPECT_THROW(map_.Missing(At(2000), 10), Error);
  map_.Set(At(1030), 20, true);
  EXPECT_THAT(map_.Missing(At(1030), 10), ElementsAre(At(1030))) << "Set outside has no effect";
}

}  // namespace
}  // namespace livepool
