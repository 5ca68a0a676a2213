#pragma once
// The checkpoints of a Trainer's run: which step hands one over, what the log says of it, and what
// becomes of the run when one fails. Thread contract: one thread per rank; every rank must make the
// same calls.

#include <cstdint>
#include <string_view>

#include "strata/telemetry/progress.hpp"
#include "strata/train/checkpoints.hpp"
#include "strata/train/trainer.hpp"
#include "train/save_cost.hpp"

namespace strata {

class RunSaves {
 public:
  RunSaves(const RunConfig& config, Session& session, Progress* progress);
  void report_to(Progress& progress) {
    progress_ = &progress;
    bytes_written_ = progress.written_before().checkpoints;
  }

  bool is_due(double epochs_before, double epochs, std::int64_t step,
              std::int64_t total_steps) const {
    return checkpoints_.is_due(epochs_before, epochs, step, total_steps);
  }
  // Whether one can be handed over by a step while training goes on.
  bool can_go_along() const { return checkpoints_.can_begin(); }
  // Of the state as it is, which the next step hands over. Waits for one that is under way.
  void begin(const RunNote& note, TrainOutcome& outcome);
  // The state as it is, before anything else happens to it. Waits for one that is under way.
  void save(const RunNote& note, TrainOutcome& outcome);
  // The same, when the run is to end soon: one that is under way gives way to it.
  void save_last(const RunNote& note, TrainOutcome& outcome);
  // Waits for one that is under way.
  void finish(TrainOutcome& outcome);

  // Of the next step: a checkpoint that was begun is handed over by one.
  std::string_view schedule() const { return carries_ ? "train_save" : "train"; }
  // The step of that schedule took so long.
  void took(double seconds);
  // At the ends of steps: what this rank votes, and what all ranks' votes amount to.
  SaveVote vote() const { return checkpoints_.vote(); }
  void agreed(const SaveVote& vote, TrainOutcome& outcome);

  std::int64_t saved_step() const { return saved_step_; }  // the last; -1: none
  double slowest_seconds() const {
    return slowest_seconds_;
  }  // at rest, of those that stand; 0: none
  // Of the checkpoints that stand or stood. For the first rank, which knows.
  std::uint64_t bytes_written() const { return bytes_written_; }

 private:
  void tell(const SaveOutcome& saved, bool went_along, TrainOutcome& outcome);
  void tell_failure(const SaveOutcome& saved, TrainOutcome& outcome);
  void wait_for_its_turn(std::int64_t step, TrainOutcome& outcome);
  SaveReport report(const SaveOutcome& saved, bool went_along) const;
  void event(const std::string& text);

  const RunConfig& config_;
  Progress* progress_;
  Checkpoints checkpoints_;
  SaveCost cost_;
  bool carries_ = false;  // the next step, or the one that runs
  bool has_told_of_waits_ = false;
  std::int64_t begun_step_ = -1, saved_step_ = -1;
  double slowest_seconds_ = 0;
  std::uint64_t bytes_written_ = 0;
};

}  // namespace strata
