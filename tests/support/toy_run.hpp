#pragma once
// Trains a toy Program through a Plan, or plainly without one; both give the losses, norms and
// final weights to compare.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "strata/io/io_engine.hpp"
#include "strata/plan/plan.hpp"
#include "strata/runtime/executor.hpp"
#include "strata/runtime/state_access.hpp"
#include "support/drives.hpp"
#include "support/toy_model.hpp"

namespace strata::testing {

struct Trajectory {
  std::vector<double> losses, norms;
  std::vector<double> micro_batch_losses;       // of all steps; of several ranks: rank after rank
  std::vector<double> scores;                   // of the "eval" sequence, run in between
  std::vector<std::vector<std::byte>> weights;  // per block
  bool operator==(const Trajectory&) const = default;
};

class ToyRank;

// What the run is told of its checkpoints.
struct ToyCheckpoints {
  int every = 0;  // a step that saves after so many, beginning with the first; 0: none
  // All is drained, and the next step is the one that saves.
  std::function<void(ToyRank&)> before_saving = {};
  std::function<void(ShardId, int tile, std::span<const std::byte> bytes,
                     std::span<const std::byte> weight)>
      on_save = {};
  std::function<void(ToyRank&, const StepArgs&, bool applied)> on_commit = {};
};

struct ToyRunOptions {
  int steps = 20;
  float max_grad_norm = 0.5f;
  int evaluate_every = 7;
  int evaluations = 1;  // in a row
  ExecutorOptions executor = {};
  ToyCheckpoints checkpoints = {};
};

// Hardware and engines of a rank that are others than the host's own. They outlive it.
struct ToyHardware {
  Device* device = nullptr;
  Kernels* device_kernels = nullptr;
  SegmentRunner* model = nullptr;
  UpdateRunner* device_optimizer = nullptr;
};

// One rank: its memory, its tiles at their first values, and its executor. `engine` serves the NVMe
// tier, every read verified; null when the plan uses none. `comm` may be null for one rank.
class ToyRank final : public StateSink, public StateCommitter {
 public:
  ToyRank(const Program& program, const Plan& plan, IoEngine* engine, Communicator* comm,
          const ExecutorOptions& options, const ToyHardware& hardware = {});

  const TierMemory& memory() const { return memory_; }
  Executor& executor() { return *executor_; }
  void end() { executor_.reset(); }
  Trajectory train(const ToyRunOptions& options);
  // A tile as it stands at its home. All must be drained.
  std::vector<std::byte> tile(ShardId shard, int tile);
  // A tile whose home is on NVMe, from the store: while nothing writes it.
  std::vector<std::byte> stored_tile(ShardId shard, int tile);

 private:
  void save(ShardId shard, int tile, std::span<const std::byte> bytes,
            std::span<const std::byte> weight) override;
  void commit(const StepArgs& args, bool applied) override;
  std::string_view begin_step(int step, const ToyCheckpoints& checkpoints);
  void make_store(IoEngine& engine);
  void initialise();
  void initialise(const Shard& shard, int tile);
  void evaluate(std::int64_t step, const ToyRunOptions& options, Trajectory& trajectory);
  std::vector<std::vector<std::byte>> weights();

  const Program& program_;
  const Plan& plan_;
  const std::unique_ptr<Device> host_ = make_host_device({});
  Device& device_;
  TierMemory memory_;
  std::optional<Drives> drives_;
  std::unique_ptr<ShardStore> store_;
  const std::unique_ptr<Kernels> kernels_ = make_ref_kernels();
  ToyModel model_;
  ToyOptimizer optimizer_;
  std::optional<StateAccess> state_;
  ToyCheckpoints checkpoints_;
  std::optional<Executor> executor_;  // last: its threads use the rest
};

Trajectory run_planned(const Program& program, const Plan& plan, IoEngine* engine,
                       const ToyRunOptions& options);
// The same steps on plain vectors, one segment after the other. `ranks` share the micro-batches of
// the Program, which is one rank's: the order of their sums is kept.
Trajectory run_plainly(const Program& program, const ToyRunOptions& options, int ranks = 1);

}  // namespace strata::testing
