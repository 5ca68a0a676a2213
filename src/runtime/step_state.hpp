#pragma once
// One step in flight: its arguments, its result and its timing. Shared by the lanes.

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "strata/plan/plan.hpp"
#include "strata/program/step.hpp"
#include "strata/runtime/executor.hpp"

namespace strata {

// When an op ran, on the clock of now_ns().
struct OpSpan {
  std::int64_t start_ns = 0, end_ns = 0;
};

struct StepState {
  const StepArgs* args = nullptr;
  std::size_t schedule = 0;
  std::uint64_t run_index = 0;  // how often this schedule was submitted before
  std::int64_t index = -1;      // of the arguments, which the caller may reuse after the step
  StepResult result;            // written by the report op
  UpdateScalars scalars;        // written by the norm op
  std::atomic<std::int64_t> ops_left{0};
  std::array<std::atomic<std::int64_t>, num_lanes> busy_ns{};
  std::array<std::atomic<std::int64_t>, num_lanes> compute_wait_ns{};
  std::atomic<std::uint64_t> nvme_bytes_read{0}, nvme_bytes_written{0}, comm_bytes{0};
  // By OpId, room for the largest schedule. Each is written by whoever carries out the op, before
  // it counts the op off ops_left: who sees 0 there may read them all.
  std::vector<OpSpan> spans;

  void begin(const StepArgs& step_args, std::size_t schedule_index, std::uint64_t run,
             std::size_t num_ops) {
    args = &step_args;
    index = step_args.index;
    schedule = schedule_index;
    run_index = run;
    for (auto& value : busy_ns) value = 0;
    for (auto& value : compute_wait_ns) value = 0;
    nvme_bytes_read = 0;
    nvme_bytes_written = 0;
    comm_bytes = 0;
    ops_left = static_cast<std::int64_t>(num_ops);
  }
  // Told of each op of a lane that does one at a time.
  void ran(const Op& op, const OpSpan& span) {
    spans[op.id.index()] = span;
    busy_ns[static_cast<std::size_t>(op.lane)] += span.end_ns - span.start_ns;
  }
  StepTiming timing() const {
    StepTiming t;
    t.index = index;
    for (std::size_t i = 0; i < num_lanes; ++i)
      t.busy_ns[i] = busy_ns[i], t.compute_wait_ns[i] = compute_wait_ns[i];
    t.nvme_bytes_read = nvme_bytes_read;
    t.nvme_bytes_written = nvme_bytes_written;
    t.comm_bytes = comm_bytes;
    return t;
  }
};

}  // namespace strata
