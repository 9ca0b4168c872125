// What livepool did in this process, for a file or a line at its exit.
#pragma once

#include <string>

namespace livepool {

// A JSON object: "active"; "cpu", "cuda:0", ... with the counts of PoolStats; "eager_code" with those of
// EagerCodeStats; "scopes" with those of ScopeStats, by name. Bytes. Not from inside a capture or replay on CUDA.
std::string ReportJson();

// One line for people.
std::string ReportLine();

namespace detail {
// Has the report written when the process exits: to LIVEPOOL_REPORT, in which %p stands for the process id; with
// LIVEPOOL_LOG=info the line to stderr. A forked child writes none. Later calls do nothing.
void ReportAtExit();
}  // namespace detail

}  // namespace livepool
