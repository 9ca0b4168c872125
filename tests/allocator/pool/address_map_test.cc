#include "livepool/pool/address_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace livepool {
namespace {

// Addresses are only compared, never used.
const std::byte* Address(std::uintptr_t i) { return reinterpret_cast<const std::byte*>(0x7000'0000'0000 + i * 64); }

TEST(AddressMapTest, FindsNothingAtFirst) {
  const AddressMap map;
  EXPECT_EQ(map.Find(Address(0)), nullptr);
  EXPECT_EQ(map.Find(nullptr), nullptr);
}

TEST(AddressMapTest, HasOneCellForEachAddress) {
  AddressMap map;
  AddressCell& cell = map.Add(Address(1));
  EXPECT_EQ(cell.address, Address(1));
  EXPECT_EQ(cell.live, nullptr);
  EXPECT_EQ(&map.Add(Address(1)), &cell);
  EXPECT_EQ(map.Find(Address(1)), &cell);
  EXPECT_EQ(map.Find(Address(2)), nullptr);
  EXPECT_EQ(map.Find(Address(1) + 1), nullptr) << "only where slots start";
}

TEST(AddressMapTest, CellsStayWhereTheyAreWhileItGrows) {
  constexpr std::uintptr_t kCells = 20'000;
  AddressMap map;
  std::vector<AddressCell*> cells;
  // Neighbours, and addresses that are far apart.
  for (std::uintptr_t i = 0; i < kCells; ++i) cells.push_back(&map.Add(Address(i % 2 == 0 ? i : i << 20)));
  for (std::uintptr_t i = 0; i < kCells; ++i) ASSERT_EQ(map.Find(Address(i % 2 == 0 ? i : i << 20)), cells[i]);
  EXPECT_EQ(map.Find(Address(kCells * 4)), nullptr);
}

// Deleters look addresses up while another thread binds a table.
TEST(AddressMapTest, FindsWhatWasAddedWhileOthersAdd) {
  constexpr std::uintptr_t kCells = 20'000;
  AddressMap map;
  std::atomic<std::uintptr_t> added{0};
  std::atomic<std::int64_t> wrong{0};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&] {
      for (std::uintptr_t known = 0; known < kCells;) {
        known = added.load(std::memory_order_acquire);
        for (std::uintptr_t i = known; i-- > (known > 32 ? known - 32 : 0);) {
          const AddressCell* cell = map.Find(Address(i));
          if (cell == nullptr || cell->address != Address(i)) ++wrong;
        }
        if (map.Find(Address(kCells + 1)) != nullptr) ++wrong;
      }
    });
  }
  for (std::uintptr_t i = 0; i < kCells; ++i) {
    map.Add(Address(i));
    added.store(i + 1, std::memory_order_release);
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace livepool
