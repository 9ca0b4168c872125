// What must hold of the CSV reader for any bytes: one function for the corpus, the seeded damage and libFuzzer.
#pragma once

#include <cstdio>
#include <sstream>
#include <string>

#include "livepool/base/error.h"
#include "livepool/plan/csv.h"

namespace livepool::testing {

// Empty if all is well; else what is not. The reader takes the text or throws InvalidInput with one line that starts
// with file, line and column; and what it takes can be written and read again. `taken` counts the readings that went
// through.
inline std::string FaultOfCsvReader(const std::string& text, int* taken = nullptr) {
  const auto read = [](const std::string& csv, bool as_table) {
    std::istringstream in(csv);
    return as_table ? ReadCsvTable(in, "t.csv").problem : ReadCsv(in, "t.csv");
  };
  for (const bool as_table : {false, true}) {
    try {
      const Problem problem = read(text, as_table);
      std::ostringstream out;
      WriteCsv(out, problem);
      if (read(out.str(), false) != problem) return "what was written reads as another problem";
      if (taken != nullptr) ++*taken;
    } catch (const InvalidInput& error) {
      const std::string message = error.what();
      int line = 0;
      int column = 0;
      if (std::sscanf(message.c_str(), "t.csv:%d:%d: ", &line, &column) != 2 || line < 1 || column < 1) {
        return "no place in '" + message + "'";
      }
      for (const char c : message) {
        if (static_cast<unsigned char>(c) < ' ') return "more than a line: '" + message + "'";
      }
      if (message.size() > 200) return "too long: '" + message + "'";
    }
  }
  return "";
}

}  // namespace livepool::testing
