#pragma once
// A CheckpointSave is one checkpoint of the state on its way to the disk. All ranks go through the
// same stages, each on a thread of its own (SaveStage), and enter the next when all have ended the
// one before, as they find out by voting: nobody waits in a collective for another's disk. The
// first rank makes the files, reads back what all have written, and gives the folder its name.
// Thread contract: one thread per rank; every rank must make the same calls.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strata/checkpoint/state_checkpoint.hpp"
#include "strata/train/checkpoints.hpp"
#include "strata/train/session.hpp"
#include "train/save_stage.hpp"

namespace strata {

class CheckpointSave {
 public:
  // Starts to open the files. `losses`: of the checkpoints that stand, which this one joins.
  CheckpointSave(const RunConfig& config, Session& session, const RunNote& note,
                 HeldOutLosses& losses);
  // Gives it up, but where it is being committed: then it waits for that.
  ~CheckpointSave();
  CheckpointSave(const CheckpointSave&) = delete;
  CheckpointSave& operator=(const CheckpointSave&) = delete;

  // This rank's.
  SaveVote vote() const;
  // Sleeps so long, or until this rank is not busy.
  void nap(std::chrono::milliseconds longest) const { stage_.wait_for(longest); }
  // Goes on to the next stage, where the votes of all ranks allow it.
  void advance(const SaveVote& agreed);
  // The files are open on all ranks. Then one of the two: write the state as it stands, with the
  // executor drained; or take it from the next step, of "train_save".
  bool is_open() const { return phase_ == Phase::open; }
  void write_state();
  void take_from_step();
  // Everything is written: soon there is a checkpoint.
  bool is_being_written() const { return phase_ == Phase::writing; }
  // What is written from now on is in vain.
  void give_up();
  bool is_over() const { return phase_ == Phase::over; }
  const SaveOutcome& outcome() const { return outcome_; }

 private:
  enum class Phase : std::uint8_t { making, joining, open, writing, committing, clearing, over };

  bool is_first() const { return session_.run().program.rank == 0; }
  void start(Phase phase, bool takes_part, std::function<void()> work);
  void open_files();
  void write(std::function<void()> hand_over);
  void stop_writing();
  void commit();
  void clear();
  void end();
  std::string after_commit();
  std::optional<std::int64_t> kept_step() const;
  std::vector<StatePiece> pieces_of_ranks() const;

  const RunConfig& config_;
  Session& session_;
  IoEngine& engine_;
  const RunNote note_;
  const std::int64_t begin_ns_;
  Phase phase_ = Phase::making;
  SaveOutcome outcome_;
  std::atomic<bool> is_given_up_ = false;
  // The stage's while it is busy.
  HeldOutLosses& losses_;
  std::unique_ptr<CheckpointWriter> writer_;
  std::vector<StatePiece> pieces_;
  std::int64_t end_ns_ = 0;
  SaveStage stage_;  // last: waits
};

}  // namespace strata
