// Problems and plans as CSV, in the format of google/minimalloc:
//
//     id,lower,upper,size[,alignment][,offset]
//     0,0,628,9633792
//
// `upper` is exclusive. Columns come in any order; an empty cell in an optional column means its default. When
// read, `offset` is a fixed offset: so a plan that was written can be judged, or kept while more is planned.
// Line ends are LF or CR LF; a UTF-8 byte order mark is skipped. There are no quotes and no spaces around numbers.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "livepool/plan/plan.h"
#include "livepool/plan/problem.h"

namespace livepool {

// Reads a problem. `name` stands for the file in messages.
// Throws InvalidInput, as "name:line:column: what", for text that is not the format above and for buffers that
// break a rule of problem.h, share an id, or whose sizes sum past 64 bits.
[[nodiscard]] Problem ReadCsv(std::istream& in, const std::string& name);

// The same from a file. Throws InvalidInput, as "path: what", if it cannot be read.
[[nodiscard]] Problem ReadCsvFile(const std::string& path);

// A problem whose ids may be any text without a comma. If all are whole numbers they are the buffers' ids, as in
// ReadCsv; else the buffers are numbered from 0 in the order of their rows.
struct CsvTable {
  Problem problem;
  std::vector<std::string> ids;  // by buffer, as in the file
  bool has_offsets = false;      // there is a column for them
};
[[nodiscard]] CsvTable ReadCsvTable(std::istream& in, const std::string& name);
[[nodiscard]] CsvTable ReadCsvTableFile(const std::string& path);

// Writes a problem, such that ReadCsv gives back an equal one. Optional columns are left out where every
// buffer has the default. Failure shows in the state of `out`, as for any stream.
void WriteCsv(std::ostream& out, const Problem& problem);

// Writes a problem with the offsets of `plan`. Throws InvalidInput if there is not one offset for each buffer.
void WriteCsv(std::ostream& out, const Problem& problem, const Plan& plan);

// The same with the ids of a table.
void WriteCsv(std::ostream& out, const CsvTable& table, const Plan& plan);

}  // namespace livepool
