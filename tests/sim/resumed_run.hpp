#pragma once
// Runs over ranks that save their state to a simulated disk and go on from it.

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/tiny_training.hpp"
#include "strata/checkpoint/state_checkpoint.hpp"

namespace strata::testing {

// Loss and norm by step, and the weights at the end.
struct RunTrail {
  std::map<std::int64_t, std::pair<double, double>> steps;
  std::map<std::int64_t, double> learning_rates;
  std::map<std::int64_t, double> held_out;  // losses, by step
  std::string weights;
  std::vector<std::int64_t> saved;         // steps, in the order in which the log has them
  std::vector<std::string> events;         // what the log says beside
  std::vector<std::string> said_of_saves;  // of these, events "save"
  std::vector<TrainOutcome> outcomes;      // of the ranks
};

// What a test does to a rank of a run, or with it.
struct ResumedRank {
  int rank = 0;
  ExecutorOptions executor = {};
  const std::atomic<bool>* stop = nullptr;
  std::atomic<bool>* save = nullptr;
  std::function<RankDevice()> open_device = {};  // empty: the host stands in for a GPU
  // Before the weights are exported as they are.
  std::function<void(Session&, const TrainOutcome&)> at_end = {};
};
using ChangeRank = std::function<void(ResumedRank&)>;  // on the rank's thread

// The change that most tests make: alike on all ranks, but for what is called before ops.
struct RunWatch {
  const std::atomic<bool>* stop = nullptr;
  std::atomic<bool>* save = nullptr;
  ExecutorOptions executor = {};
  std::function<void(const Op&)> before_op_of_first = {};  // as ExecutorOptions::before_op
  void operator()(ResumedRank& given) const {
    given.stop = stop;
    given.save = save;
    given.executor = executor;
    if (given.rank == 0) given.executor.before_op = before_op_of_first;
  }
};

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
  // The same from whatever config.resume_from_checkpoint finds there, as `strata train` does.
  RunTrail go_on(RunConfig config, int world, const ChangeRank& change = {});
  // Those of the run, on the disk, which a power cut does not take back.
  void make_lasting_folders(const RunConfig& config);
  IoEngine& engine() { return *engine_; }
  SimEngine& disk() { return *disk_; }

 private:
  void prepare(RunConfig& config, int world);
  RunTrail run(const RunConfig& config, const SessionOptions& shared, const RunNote* from,
               const ChangeRank& change = {});

  std::shared_ptr<SimEngine> disk_;
  std::shared_ptr<IoEngine> engine_;
};

// A tiny run that evaluates nothing, and saves after every so many of its steps.
RunConfig saving_config(const TrainingFiles& files, std::int64_t save_steps,
                        std::int64_t max_steps);
// Where a run of `config` saves after `step`.
std::string checkpoint_of(const RunConfig& config, std::int64_t step);

// What two verified checkpoints on the disk differ in; empty: nothing.
std::string checkpoint_difference(IoEngine& disk, const std::string& one, const std::string& other);

// Of the steps after `step`; empty when equal.
std::string difference_after(std::int64_t step, const RunTrail& expected, const RunTrail& got);

}  // namespace strata::testing
