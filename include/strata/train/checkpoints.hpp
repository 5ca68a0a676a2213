#pragma once
// The checkpoints of one run: when they are due, how all ranks write one together, and which are
// kept. Thread contract: one thread per rank; every rank must make the same calls.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "strata/checkpoint/best_checkpoint.hpp"
#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/train/session.hpp"

namespace strata {

// The best checkpoint of a run is never removed.
bool keeps_best(const RunConfig& config);
// Of save_total_limit: beside the last one the best is kept too. 0: all are.
std::int64_t checkpoints_kept(const RunConfig& config);

// Of one checkpoint of a run, and of all that are kept at once (one more while it is written).
struct CheckpointDemand {
  std::uint64_t bytes = 0, bytes_kept = 0;  // bytes_kept 0: no limit is set
};
CheckpointDemand checkpoint_demand(const RunConfig& config, const PlannedRun& run);

// The checkpoint that a run goes on from; null: it starts from the beginning. Throws ConfigError
// when the one that is named is not there or is of weights alone, and when the output folder has
// checkpoints that the run was not told to go on from, or newer ones than it goes on from.
std::unique_ptr<CheckpointReader> open_resume_point(const RunConfig& config, IoEngine& engine);

struct SaveOutcome {
  std::int64_t step = 0;
  std::string path;
  std::uint64_t bytes = 0;  // on disk; known to the first rank
  double seconds = 0;       // from the beginning until it stands
  std::string failure;      // empty: the checkpoint stands, verified
  std::string warning;      // an old one could not be removed
};

// Of a checkpoint under way: a rank's, or that of all ranks together.
struct SaveVote {
  bool is_busy = false;  // with its part of the stage that all are at
  bool has_failed = false;
};

class CheckpointSave;

class Checkpoints {
 public:
  Checkpoints(const RunConfig& config, Session& session);
  ~Checkpoints();  // One that is under way is given up, unless it is being committed.

  // After a step that took the data from one place, in epochs, to another.
  bool is_due(double epochs_before, double epochs, std::int64_t step,
              std::int64_t total_steps) const;
  // Writes the state as it is, drains the executor for it, and removes old ones. A failure is an
  // outcome: what stood before stands. Throws when the ranks can no longer talk. None is under way.
  SaveOutcome save(const RunNote& note);

  // Whether steps of "train_save" can hand the state over while they run.
  bool can_begin() const { return session_.sink() != nullptr; }
  // Opens a checkpoint, with none under way, of the state as it is: the next step, of "train_save",
  // hands it over. An outcome: it failed, and the next step must be of "train".
  std::optional<SaveOutcome> begin(const RunNote& note);
  bool is_under_way() const { return save_ != nullptr; }
  // Those under way go on by votes at the ends of steps: this rank's, and what all ranks' amount
  // to. An outcome: that was all.
  SaveVote vote() const;
  std::optional<SaveOutcome> advance(const SaveVote& agreed);
  // Waits for the one under way, which the steps have handed over or, with save(), nobody need.
  SaveOutcome complete();
  // Whether one is under way that is not all written. Drops it, for a newer one.
  bool can_give_way() const;
  void give_way();

 private:
  SaveOutcome save_weights(const RunNote& note);
  std::string write_weights(const std::string& path);
  bool open(const RunNote& note);
  SaveVote settle();
  SaveOutcome take_outcome();

  const RunConfig& config_;
  Session& session_;
  // Of what stands in the output folder, where the best is kept: known, so that a save reads none.
  HeldOutLosses losses_;
  std::unique_ptr<CheckpointSave> save_;
};

}  // namespace strata
