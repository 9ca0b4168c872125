// The CSV reader on files that were made by hand, or found by csv_fuzzer.cc, and on seeded damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "allocator/plan/csv_fuzz.h"

namespace livepool {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Corpus() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(LIVEPOOL_SOURCE_DIR) / "tests/allocator/plan/csv_corpus")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string BytesOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(CsvCorpus, EveryFileIsTakenOrRefusedInOneLine) {
  int taken = 0;
  for (const fs::path& file : Corpus()) EXPECT_EQ(testing::FaultOfCsvReader(BytesOf(file), &taken), "") << file;
  EXPECT_GT(taken, 10);
}

// Each file with a few bytes changed, inserted, cut out or cut off.
TEST(CsvCorpus, SurvivesRandomDamage) {
  const std::string bytes(",-+.0919\n\r\"\0\xff eid", 19);
  int taken = 0;
  for (const fs::path& file : Corpus()) {
    const std::string good = BytesOf(file);
    for (std::uint64_t seed = 0; seed < 1'000; ++seed) {
      std::mt19937_64 random(seed);
      std::string text = good;
      for (std::uint64_t n = 1 + random() % 3; n > 0 && !text.empty(); --n) {
        const std::size_t at = random() % text.size();
        const char byte = bytes[random() % bytes.size()];
        switch (random() % 4) {
          case 0:
            text[at] = byte;
            break;
          case 1:
            text.insert(at, 1, byte);
            break;
          case 2:
            text.erase(at, 1);
            break;
          default:
            text.resize(at + 1);
        }
      }
      EXPECT_EQ(testing::FaultOfCsvReader(text, &taken), "") << file << " seed " << seed;
    }
  }
  EXPECT_GT(taken, 5'000);  // or the damage was too heavy to say anything
}

}  // namespace
}  // namespace livepool
