// The CSV reader under libFuzzer (clang, -DLIVEPOOL_FUZZ=ON):
//
//     build/fuzz/bin/csv_fuzzer -max_total_time=300 NEW_FOLDER tests/allocator/plan/csv_corpus
//
// The corpus, and what the fuzzer finds, run in the tests through the same function (csv_fuzz.h).
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "allocator/plan/csv_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string fault = livepool::testing::FaultOfCsvReader({reinterpret_cast<const char*>(data), size});
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", fault.c_str());
  std::abort();
}
