#include "cli/rank_trace.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>

#include "strata/core/error.hpp"

namespace strata {

std::string rank_trace_path(const std::string& asked_for, Job& job) {
  if (asked_for.empty() || std::ssize(job.ranks()) == job.world()) return asked_for;
  const std::filesystem::path path = asked_for;
  const std::string name = fmt::format("{}.rank{}{}", path.stem().string(), job.place(0).rank,
                                       path.extension().string());
  return (path.parent_path() / name).string();
}

std::unique_ptr<TraceFile> open_trace(const std::string& path) {
  return path.empty() ? nullptr : std::make_unique<TraceFile>(path);
}

void close_trace(TraceFile* trace) {
  if (trace == nullptr || !trace->failure().empty()) return;  // The first rank has told of it.
  try {
    trace->close();
  } catch (const Error& error) {
    fmt::print(stderr, "warning: {}; the trace ends early\n", error.what());
  }
}

}  // namespace strata
