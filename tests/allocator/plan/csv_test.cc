#include "livepool/plan/csv.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "allocator/plan/test_problems.h"
#include "livepool/base/error.h"
#include "livepool/plan/planner.h"

namespace livepool {
namespace {

Problem Read(const std::string& text) {
  std::istringstream in(text);
  return ReadCsv(in, "t.csv");
}

std::string Write(const Problem& problem) {
  std::ostringstream out;
  WriteCsv(out, problem);
  return out.str();
}

const Problem kTwo{{{.id = 1, .lifetime = {0, 4}, .size = 8}, {.id = 2, .lifetime = {-3, 9}, .size = 5}}};

TEST(ReadCsv, ReadsTheFormat) { EXPECT_EQ(Read("id,lower,upper,size\n1,0,4,8\n2,-3,9,5\n"), kTwo); }

TEST(ReadCsv, TakesColumnsInAnyOrder) { EXPECT_EQ(Read("size,upper,id,lower\n8,4,1,0\n5,9,2,-3\n"), kTwo); }

TEST(ReadCsv, TakesWindowsLineEndsAndALastLineWithoutEnd) {
  EXPECT_EQ(Read("id,lower,upper,size\r\n1,0,4,8\r\n2,-3,9,5\r\n"), kTwo);
  EXPECT_EQ(Read("id,lower,upper,size\n1,0,4,8\n2,-3,9,5"), kTwo);
}

TEST(ReadCsv, AHeaderAloneIsTheEmptyProblem) { EXPECT_EQ(Read("id,lower,upper,size\n"), Problem{}); }

TEST(ReadCsv, EmptyOptionalCellsMeanTheDefault) {
  const Problem problem = Read("id,lower,upper,size,alignment,offset\n1,0,4,8,,\n2,0,4,8,16,\n3,0,4,8,,24\n");
  EXPECT_EQ(problem.buffers[0], (Buffer{.id = 1, .lifetime = {0, 4}, .size = 8}));
  EXPECT_EQ(problem.buffers[1], (Buffer{.id = 2, .lifetime = {0, 4}, .size = 8, .alignment = 16}));
  EXPECT_EQ(problem.buffers[2], (Buffer{.id = 3, .lifetime = {0, 4}, .size = 8, .fixed_offset = 24}));
}

struct BadText {
  const char* name;
  const char* text;
  const char* message;
};

const BadText kBadTexts[] = {
    {"NoHeader", "", "t.csv:1:1: the file is empty; expected a header like id,lower,upper,size"},
    {"MissingColumn", "id,lower,upper\n", "t.csv:1:1: column 'size' is missing"},
    {"DoubleColumn", "id,lower,size,upper,size\n", "t.csv:1:21: column 'size' comes twice"},
    {"UnknownColumn", "id,lower,upper,size,hint\n", "t.csv:1:21: unknown column 'hint'"},
    {"SpacedColumn", "id, lower,upper,size\n", "t.csv:1:4: unknown column ' lower'"},
    {"FewCells", "id,lower,upper,size\n1,0,4\n", "t.csv:2:6: expected 4 cells, found 3"},
    {"ManyCells", "id,lower,upper,size\n1,0,4,8,9\n", "t.csv:2:9: expected 4 cells, found 5"},
    {"EmptyLine", "id,lower,upper,size\n1,0,4,8\n\n", "t.csv:3:1: expected 4 cells, found 1"},
    {"Text", "id,lower,upper,size\n1,0,4,big\n", "t.csv:2:7: 'big' is not a whole number"},
    {"Fraction", "id,lower,upper,size\n1,0,4.5,8\n", "t.csv:2:5: '4.5' is not a whole number"},
    {"Space", "id,lower,upper,size\n1,0, 4,8\n", "t.csv:2:5: ' 4' is not a whole number"},
    {"EmptyCell", "id,lower,upper,size\n1,,4,8\n", "t.csv:2:3: '' is not a whole number"},
    {"Beyond64Bits", "id,lower,upper,size\n1,0,4,9223372036854775808\n",
     "t.csv:2:7: '9223372036854775808' is beyond 64 bits"},
    {"DuplicateId", "id,lower,upper,size\n1,0,4,8\n2,0,4,8\n1,5,6,8\n", "t.csv:4:1: id 1 is taken by line 2"},
    {"EmptyLifetime", "id,lower,upper,size\n1,4,4,8\n", "t.csv:2:5: upper 4 does not come after lower 4"},
    {"NegativeLifetime", "id,lower,upper,size\n1,4,2,8\n", "t.csv:2:5: upper 2 does not come after lower 4"},
    {"SizeZero", "size,id,lower,upper\n0,1,0,4\n", "t.csv:2:1: size 0 is not positive"},
    {"SizeNegative", "id,lower,upper,size\n1,0,4,-8\n", "t.csv:2:7: size -8 is not positive"},
    {"SumBeyond64Bits", "id,lower,upper,size\n1,0,1,9223372036854775807\n2,1,2,1\n",
     "t.csv:3:7: the sizes sum past 64 bits"},
    {"AlignmentZero", "id,lower,upper,size,alignment\n1,0,4,8,0\n", "t.csv:2:9: alignment 0 is not positive"},
    {"OffsetNegative", "id,lower,upper,size,offset\n1,0,4,8,-1\n", "t.csv:2:9: offset -1 is negative"},
    {"OffsetUnaligned", "id,lower,upper,size,alignment,offset\n1,0,4,8,4,6\n",
     "t.csv:2:11: offset 6 is not a multiple of alignment 4"},
};

class ReadCsvTest : public ::testing::TestWithParam<BadText> {};

TEST_P(ReadCsvTest, Refuses) {
  try {
    (void)Read(GetParam().text);
    FAIL() << "nothing was thrown";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), GetParam().message);
  }
}

INSTANTIATE_TEST_SUITE_P(BadTexts, ReadCsvTest, ::testing::ValuesIn(kBadTexts),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(ReadCsvFile, ReadsAFile) {
  const std::string path = ::testing::TempDir() + "livepool_csv_test.csv";
  std::ofstream(path) << Write(kTwo);
  EXPECT_EQ(ReadCsvFile(path), kTwo);
  std::remove(path.c_str());
}

TEST(ReadCsvFile, NamesAFileThatIsNotThere) {
  const std::string path = ::testing::TempDir() + "livepool_no_such_file.csv";
  try {
    (void)ReadCsvFile(path);
    FAIL() << "nothing was thrown";
  } catch (const InvalidInput& error) {
    EXPECT_EQ(error.what(), path + ": cannot be opened");
  }
}

TEST(ReadCsvFile, RefusesAFolder) { EXPECT_THROW((void)ReadCsvFile(::testing::TempDir()), InvalidInput); }

TEST(WriteCsv, LeavesOutColumnsThatSayNothing) {
  EXPECT_EQ(Write(kTwo), "id,lower,upper,size\n1,0,4,8\n2,-3,9,5\n");
  Problem problem = kTwo;
  problem.buffers[1].alignment = 16;
  EXPECT_EQ(Write(problem), "id,lower,upper,size,alignment\n1,0,4,8,1\n2,-3,9,5,16\n");
  problem.buffers[0].fixed_offset = 32;
  EXPECT_EQ(Write(problem), "id,lower,upper,size,alignment,offset\n1,0,4,8,1,32\n2,-3,9,5,16,\n");
}

TEST(WriteCsv, RoundTrip) {
  for (const testing::NamedProblem& named : testing::HandMadeProblems()) {
    SCOPED_TRACE(named.name);
    EXPECT_EQ(Read(Write(named.problem)), named.problem);
  }
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = testing::RandomProblem(seed, {.alignments = true, .fixed_offsets = true});
    EXPECT_EQ(Read(Write(problem)), problem);
  }
}

TEST(WriteCsv, APlanComesBackAsFixedOffsets) {
  const Problem problem = testing::HandMade("Aligned");
  const Plan plan = MakePlan(problem);
  std::ostringstream out;
  WriteCsv(out, problem, plan);
  const Problem read = Read(out.str());
  const Plan replanned = MakePlan(read);
  EXPECT_EQ(replanned.offsets, plan.offsets);
  EXPECT_EQ(replanned.height, plan.height);
}

TEST(WriteCsv, RefusesAPlanOfAnotherProblem) {
  std::ostringstream out;
  EXPECT_THROW(WriteCsv(out, kTwo, Plan{}), InvalidInput);
}

CsvTable ReadTable(const std::string& text) {
  std::istringstream in(text);
  return ReadCsvTable(in, "t.csv");
}

TEST(ReadCsvTable, TakesAnyTextAsId) {
  const CsvTable table = ReadTable("id,lower,upper,size,offset\nconv1.out,0,4,8,\n#2,0,4,8,16\n");
  EXPECT_EQ(table.ids, (std::vector<std::string>{"conv1.out", "#2"}));
  EXPECT_TRUE(table.has_offsets);
  EXPECT_EQ(table.problem.buffers[0], (Buffer{.id = 0, .lifetime = {0, 4}, .size = 8}));
  EXPECT_EQ(table.problem.buffers[1], (Buffer{.id = 1, .lifetime = {0, 4}, .size = 8, .fixed_offset = 16}));
}

TEST(ReadCsvTable, KeepsIdsThatAreNumbers) {
  EXPECT_EQ(ReadTable("id,lower,upper,size\n1,0,4,8\n2,-3,9,5\n").problem, kTwo);
  // One number in two spellings is two ids, but cannot be two numbers.
  const CsvTable table = ReadTable("id,lower,upper,size\n7,0,4,8\n07,0,4,8\n");
  EXPECT_EQ(table.problem.buffers[0].id, 0);
  EXPECT_EQ(table.problem.buffers[1].id, 1);
}

TEST(ReadCsvTable, RefusesIdsThatAreEmptyOrTaken) {
  EXPECT_THROW(ReadTable("id,lower,upper,size\n,0,4,8\n"), InvalidInput);
  try {
    (void)ReadTable("id,lower,upper,size\nb,0,4,8\nb,0,4,8\n");
    FAIL() << "nothing was thrown";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), "t.csv:3:1: id 'b' is taken by line 2");
  }
}

TEST(WriteCsv, ATableKeepsItsIds) {
  const CsvTable table = ReadTable("id,lower,upper,size\nb1,0,4,8\n");
  std::ostringstream out;
  WriteCsv(out, table, MakePlan(table.problem));
  EXPECT_EQ(out.str(), "id,lower,upper,size,offset\nb1,0,4,8,0\n");
}

TEST(ReadCsv, QuotesLongAndBinaryTextInOneShortLine) {
  const std::string text = "id,lower,upper,size\n1,0,4," + std::string(1000, 'x') + std::string("\0\t", 2) + "\n";
  try {
    (void)Read(text);
    FAIL() << "nothing was thrown";
  } catch (const InvalidInput& error) {
    EXPECT_EQ(error.what(), "t.csv:2:7: '" + std::string(40, 'x') + "...' is not a whole number");
  }
}

TEST(ReadCsv, RefusesAMillionColumns) {
  EXPECT_THROW((void)Read("id,lower,upper,size\n" + std::string(1'000'000, ',') + "\n"), InvalidInput);
  EXPECT_THROW((void)Read(std::string(1'000'000, ',') + "\n"), InvalidInput);
}

}  // namespace
}  // namespace livepool
