#pragma once
// Trains a toy Program on several ranks, each a thread with a Plan, tiers and an executor of its
// own; all share one I/O engine.

#include <functional>
#include <string>
#include <vector>

#include "support/toy_program.hpp"
#include "support/toy_run.hpp"

namespace strata::testing {

// What became of each rank, and of the job.
struct RanksRun {
  std::vector<Trajectory> trajectories;
  std::vector<StepTiming> train, eval;  // of the last step of each
  std::vector<std::string> errors;      // empty: ended well
  std::string failure;                  // the job's
};

class ToyRanks {
 public:
  using RankOptions = std::function<ExecutorOptions(int rank)>;
  using RankHardware = std::function<ToyHardware(int rank)>;  // on its thread

  // Rank 0's Plan is verified.
  ToyRanks(const ToyShape& shape, const Policy& policy);

  int world() const { return shape_.world; }
  void set_hardware(RankHardware hardware) { hardware_ = std::move(hardware); }
  // Called on each rank's thread before it has anything: what else shall carry its data.
  void set_carrier(std::function<void(RankLinks& links)> carrier) { carrier_ = std::move(carrier); }
  const Program& program(int rank) const { return programs_[static_cast<std::size_t>(rank)]; }
  const Plan& plan(int rank) const { return plans_[static_cast<std::size_t>(rank)]; }

  // Runs `body` for each rank on its thread, when all have their first values; ends when all have
  // ended. An Error of it is the rank's; nobody but the executors tells the others.
  RanksRun run(IoEngine* engine, const RankOptions& rank_options,
               const std::function<void(ToyRank&, int rank, RanksRun&)>& body) const;
  // Trains: options.executor with a seed of each rank's own.
  RanksRun train(IoEngine* engine, const ToyRunOptions& options) const;
  RanksRun train(IoEngine* engine, const ToyRunOptions& options,
                 const RankOptions& rank_options) const;

  // What all ranks agree on, with the weights of all, without padding. Where they do not agree, the
  // test has failed.
  Trajectory together(const RanksRun& run) const;
  // The same on plain vectors.
  Trajectory plainly(const ToyRunOptions& options) const;

 private:
  std::vector<std::byte> weight_together(const RanksRun& run, const Shard& weight,
                                         std::size_t block) const;

  ToyShape shape_;
  std::vector<Program> programs_;
  std::vector<Plan> plans_;
  RankHardware hardware_ = [](int) { return ToyHardware{}; };
  std::function<void(RankLinks& links)> carrier_ = [](RankLinks&) {};
};

// The same work for one rank: all the micro-batches of all.
ToyShape one_rank_shape(ToyShape shape);

}  // namespace strata::testing
