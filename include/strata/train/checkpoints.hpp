#pragma once
// The checkpoints of one run: when they are due, how all ranks write one together, and which are
// kept. Thread contract: one thread per rank; every rank must make the same calls.

#include <cstdint>
#include <memory>
#include <string>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/train/session.hpp"

namespace strata {

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
  std::string path;
  std::uint64_t bytes = 0;
  double seconds = 0;
  std::string failure;  // empty: the checkpoint stands, verified
  std::string warning;  // an old one could not be removed
};

class Checkpoints {
 public:
  Checkpoints(const RunConfig& config, Session& session) : config_(config), session_(session) {}

  // After a step that took the data from one place, in epochs, to another.
  bool is_due(double epochs_before, double epochs, std::int64_t step) const;
  // Writes the state as it is, drains the executor for it, and removes old ones. A failure is an
  // outcome: what stood before stands. Throws when the ranks can no longer talk.
  SaveOutcome save(const RunNote& note);

 private:
  std::string write_weights(const std::string& path);
  std::string write_state(const RunNote& note);
  std::vector<StatePiece> pieces_of_ranks(std::vector<StatePiece> own);
  std::string remove_old(std::int64_t step);

  const RunConfig& config_;
  Session& session_;
};

}  // namespace strata
