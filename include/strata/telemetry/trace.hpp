#pragma once
// Chrome trace JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open: a process per
// rank, a row per lane, counters and flows. The same rows serve what a plan predicts and what a run
// measured. A file is valid JSON at each flush; `.gz` is not written. Thread contract: a TraceFile
// from any thread, so that ranks which are threads share one; a StepTracer of one.
//
// A run that is killed leaves the file as it was flushed last. Killed within the write of a flush
// it may lack its closing bracket and end amid an event; both viewers load it up to there.

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

// Times are written as whole nanoseconds, so that what touches on our clock touches in the file.
// What has a time or value that is not finite is left out: JSON has no word for it.
class TraceFile {
 public:
  // Throws SystemError when the file cannot be written. Replaces what is there.
  explicit TraceFile(const std::filesystem::path& path);
  ~TraceFile();

  void name_process(int process, const std::string& name);
  // Viewers keep row 0 and process 0 for the idle kernel, and show a row's number beside its name:
  // rows are from 1, and processes are written one higher than they are numbered here.
  void name_row(int process, int row, const std::string& name, int sorts_as);
  struct Span {
    int process = 0, row = 0;
    std::string_view name = {}, category = {};
    double start_s = 0, seconds = 0;  // viewers drop what starts below 0
    std::vector<std::pair<std::string, std::string>> arguments = {};  // digits become numbers
  };
  void span(const Span& span);
  void counter(int process, const std::string& name, const std::string& unit, double at_s,
               double value);
  // An arrow between two spans, from the end of one to the start of the other. After both.
  void flow(std::uint64_t id, const Span& from, const Span& to);

  // Whose times come from a clock of nanoseconds counts them from here, as all others do: now, of
  // the first that asks.
  std::int64_t origin_ns();

  // Brings what was said so far to the file. A write that fails is told by failure() and close():
  // the file then ends, as valid JSON, with the flush before, and takes no more.
  void flush();
  std::string failure() const;  // empty: none so far
  // Throws SystemError when a write failed. Called by the destructor, which keeps quiet.
  void close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Steps, of one schedule as a rule, on the rows of one process: a row of the steps, from the first
// to the last op of the compute lane; a row per lane in use (NVMe lanes split into as many rows as
// have transfers side by side); flows from each fetch to its first use; and counters of the bytes
// per second on each link. Ops that take no time are left out. Steps overlap: those that follow one
// another in a run share the rows. All arguments outlive it.
class StepTracer {
 public:
  StepTracer(TraceFile& trace, int process, const Program& program, const Plan& plan,
             const Schedule& schedule);
  ~StepTracer();

  // The next step in order. `times` is indexed by OpId; `at_s` is added to all of them. `number`
  // stands in its spans' arguments.
  void step(std::span<const OpTime> times, double at_s, std::int64_t number);
  // The next step, of another schedule of the plan; those after it are too.
  void step(const Schedule& schedule, std::span<const OpTime> times, double at_s,
            std::int64_t number);
  // Writes the counters, which sum over steps. After the last step.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Two equal steps, `step_s` apart, as a process: what the second waits for may be the first's. They
// are moved to later by as much as the first op would start below 0.
void trace_steps(TraceFile& trace, int process, const Program& program, const Plan& plan,
                 const Schedule& schedule, std::span<const OpTime> times, double at_s,
                 double step_s);

}  // namespace strata
