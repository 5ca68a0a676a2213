#pragma once
// The trace file of the ranks that a process has. Thread contract: one thread.

#include <memory>
#include <string>

#include "strata/telemetry/trace.hpp"
#include "strata/train/job.hpp"

namespace strata {

// Ranks that are threads share the file that was asked for; processes have one each, named after
// their first rank: "trace.rank4.json". Empty: none was.
std::string rank_trace_path(const std::string& asked_for, Job& job);
// Before anything is loaded: a file that cannot be written should not cost the time. Null: none.
std::unique_ptr<TraceFile> open_trace(const std::string& path);
// When every rank's part is in it.
void close_trace(TraceFile* trace);

}  // namespace strata
