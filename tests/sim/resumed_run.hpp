#pragma once
// Runs over ranks that save their state to a simulated disk and go on from it.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/tiny_training.hpp"
#include "strata/checkpoint/state_checkpoint.hpp"

namespace strata::testing {

// Loss and norm by step, and the weights at the end.
struct RunTrail {
  std::map<std::int64_t, std::pair<double, double>> steps;
  std::map<std::int64_t, double> learning_rates;
  std::string weights;
  std::vector<std::string> said_of_saves;  // events "save"
  TrainOutcome outcome;                    // the first rank's
};

// What one rank of a run is given.
struct ResumedRank {
  int rank = 0;
  ExecutorOptions executor = {};
  const std::atomic<bool>* stop = nullptr;
};
using ChangeRank = std::function<void(ResumedRank&)>;  // on the rank's thread

// A disk, and folders of runs on it.
class ResumeBench {
 public:
  explicit ResumeBench(const SimOptions& disk = {});
  // On a disk of the caller's: not for disk().
  explicit ResumeBench(std::shared_ptr<IoEngine> engine) : engine_(std::move(engine)) {}

  // Trains `config` on `world` ranks, from `checkpoint` on if one is named. Checkpoints go to
  // config.output_dir on the simulated disk, all else to a real folder of that name.
  RunTrail train(RunConfig config, int world, const std::string& checkpoint = "",
                 const ChangeRank& change = {});
  SimEngine& disk() { return *disk_; }

 private:
  std::shared_ptr<SimEngine> disk_;
  std::shared_ptr<IoEngine> engine_;
};

// Of the steps after `step`; empty when equal.
std::string difference_after(std::int64_t step, const RunTrail& expected, const RunTrail& got);

}  // namespace strata::testing
