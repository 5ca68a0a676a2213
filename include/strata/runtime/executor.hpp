#pragma once
// An Executor walks a Plan's schedule on real lanes and owns all waiting. Nothing is allocated or
// decided during a step.
//
// Modes. `threaded`: one thread per lane, the product. `serial`: ops in emission order on the
// calling thread. `seeded`: on the calling thread, any op whose edges are met may go next, picked
// by a seeded generator; the test of the edges. All give the same bits.
//
// Failure. When an op fails, every lane stops issuing, transfers that the drive has not begun are
// given up, what is in flight drains, and the error is thrown with the op, tile and step named:
// from wait_result() or drain() on threads, else from the call that ran the op. The Executor is
// then unusable: whatever is asked of it throws the same error.
//
// With several ranks the Communicator is aborted with that error, which ends the other ranks; so
// does an Executor that is destroyed before its steps are complete.
//
// Thread contract: used by one thread.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "strata/comm/communicator.hpp"
#include "strata/device/device.hpp"
#include "strata/io/store/shard_store.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/memory/tier_memory.hpp"
#include "strata/plan/plan.hpp"
#include "strata/plan/simulate.hpp"
#include "strata/program/step.hpp"

namespace strata {

enum class ExecutionMode : std::uint8_t { threaded, serial, seeded };
enum class Poison : std::uint8_t {
  off,
  on
};  // on: what an op produces is filled with NaN before it runs

struct ExecutorOptions {
  ExecutionMode mode = ExecutionMode::threaded;
  std::uint64_t seed = 0;  // seeded
  Poison poison = Poison::off;
  // threaded: called on each lane's thread before its first op; the place to bind it. Must not
  // throw.
  std::function<void(Lane)> on_lane_start = {};
  // Called before each op, on its lane's thread; what it throws is the op's failure. Stands in for
  // faults: tests. A transfer's is called before the drive has it.
  std::function<void(const Op&)> before_op = {};
  // threaded: called on its lane's thread when an op that began at `start_ns` has run, before
  // anybody may learn of it; what it takes counts as the op's time. Stands in for slower hardware:
  // bench/plan_accuracy. Not called for NVMe transfers. Must not throw.
  std::function<void(const Op&, std::int64_t start_ns)> after_op = {};
};

// Takes what save ops hand over. Thread contract: called on the save lane's thread, in the lane's
// order; the caller's where the mode has no lanes.
class StateSink {
 public:
  virtual ~StateSink() = default;
  // The bytes of a tile of master or moments and, of a split master, of its weight's tile (else
  // empty), valid until it returns. A checkpoint that fails is the sink's to remember: what it
  // throws ends the run.
  virtual void save(ShardId shard, int tile, std::span<const std::byte> bytes,
                    std::span<const std::byte> weight) = 0;
};

// Makes a step's state on a versioned store durable, with what the run needs to go on from there.
// Thread contract: as of StateSink.
class StateCommitter {
 public:
  virtual ~StateCommitter() = default;
  // Everything that the step wrote to the store is written; `applied`: its updates were. Throws
  // what ends the run.
  virtual void commit(const StepArgs& args, bool applied) = 0;
};

// The parts an Executor works with; all outlive it. `store` holds the tiles of NvmeTiles(program,
// plan), in their order; it may be null when the Plan uses no NVMe.
struct ExecutorParts {
  Device* device = nullptr;
  TierMemory* memory = nullptr;
  ShardStore* store = nullptr;
  Kernels* device_kernels = nullptr;  // compute lane
  Kernels* host_kernels = nullptr;    // update lane
  SegmentRunner* model = nullptr;
  UpdateRunner* optimizer = nullptr;         // update lane; null when no schedule updates
  UpdateRunner* device_optimizer = nullptr;  // compute lane; null: `optimizer` serves both
  Communicator* comm = nullptr;              // comm lane; may be null for one rank
  StateSink* sink = nullptr;                 // save lane; null when no schedule saves
  StateCommitter* committer = nullptr;       // save lane; null when no schedule commits
};

// Where a step's time went. Nanoseconds; waits are the compute lane's, by the lane that kept it
// waiting.
struct StepTiming {
  std::int64_t index = -1;
  std::array<std::int64_t, num_lanes> busy_ns{};
  std::array<std::int64_t, num_lanes> compute_wait_ns{};
  std::uint64_t nvme_bytes_read = 0;
  std::uint64_t nvme_bytes_written = 0;
  std::uint64_t comm_bytes = 0;  // exchanged with other ranks
};

// One step that completed as a whole: where its time went, and when each of its ops ran. A
// transfer's time is that from its handing to the drive to its completion.
struct CompletedStep {
  StepTiming timing;
  std::vector<OpTime> ops;  // indexed by OpId
};

class Executor {
 public:
  Executor(const Program& program, const Plan& plan, const ExecutorParts& parts,
           const ExecutorOptions& options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // Starts one step of the named schedule; at most two steps are in flight: a third waits for the
  // first to complete. A change of schedule drains first.
  void submit(std::string_view schedule, const StepArgs& args);
  // Blocks until the oldest unreported step has reported its result; its later ops (updates) may
  // still run. The result is valid while the next two steps run.
  const StepResult& wait_result();
  // Blocks until every op of every submitted step has completed.
  void drain();
  // Timing of the schedule's last step that completed as a whole; index -1: none yet.
  StepTiming last_timing(std::string_view schedule) const;
  // The step of the schedule with this StepArgs::index, its ops in seconds since `origin_ns` of
  // now_ns(). None when it has not completed, or four later ones of any schedule were submitted.
  std::optional<CompletedStep> completed_step(std::string_view schedule, std::int64_t index,
                                              std::int64_t origin_ns) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace strata
