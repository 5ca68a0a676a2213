#pragma once
// Chrome trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open: a process per
// rank, a row per lane, counters and flows. The same rows serve what a plan predicts and what a run
// measured. A file is valid JSON at each flush; `.gz` is not written. Thread contract: one thread.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strata/plan/simulate.hpp"

namespace strata {

class TraceFile {
 public:
  // Throws Error when the file cannot be written.
  explicit TraceFile(const std::filesystem::path& path);
  ~TraceFile();

  void name_process(int process, const std::string& name);
  void name_row(int process, int row, const std::string& name);  // rows sort by their number
  struct Span {
    int process = 0, row = 0;
    std::string_view name, category;
    double start_s = 0, seconds = 0;
    std::vector<std::pair<std::string, std::string>> arguments = {};
  };
  void span(const Span& span);
  void counter(int process, const std::string& name, double at_s, double value);
  // An arrow between two spans, from the end of one to the start of the other.
  void flow(std::uint64_t id, const Span& from, const Span& to);
  // Throws Error when a write failed. Called by the destructor, which keeps quiet.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One step of a schedule as a process: a row per lane in use (NVMe lanes split into as many rows as
// have transfers side by side), flows from each fetch to its first use, and counters of the bytes
// per second on each link. `times` is indexed by OpId; `at_s` is added to all of them.
void trace_step(TraceFile& trace, int process, const Program& program, const Plan& plan,
                const Schedule& schedule, std::span<const OpTime> times, double at_s);

}  // namespace strata
