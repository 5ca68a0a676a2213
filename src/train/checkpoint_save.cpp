#include "train/checkpoint_save.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "checkpoint/checkpoint_names.hpp"
#include "strata/core/clock.hpp"
#include "strata/core/error.hpp"
#include "train/checkpoint_sink.hpp"
#include "train/state_pieces.hpp"
#include "train/state_saver.hpp"

namespace strata {

CheckpointSave::CheckpointSave(const RunConfig& config, Session& session, const RunNote& note,
                               HeldOutLosses& losses)
    : config_(config),
      session_(session),
      engine_(session.engine()),
      note_(note),
      begin_ns_(now_ns()),
      losses_(losses) {
  outcome_.step = note.step;
  outcome_.path = (config.output_dir / folder_name(note.step, FolderState::whole)).string();
  start(Phase::making, is_first(), [this] { open_files(); });
}

CheckpointSave::~CheckpointSave() { give_up(); }

SaveVote CheckpointSave::vote() const {
  const bool is_busy = stage_.is_busy();
  return {is_busy, !is_busy && !stage_.failure().empty()};
}

void CheckpointSave::advance(const SaveVote& agreed) {
  if (agreed.is_busy) {
    if (agreed.has_failed) stop_writing();
    return;
  }
  if (agreed.has_failed && outcome_.failure.empty())
    outcome_.failure = session_.first_of_ranks(stage_.failure());
  const bool has_failed = !outcome_.failure.empty();
  switch (phase_) {
    case Phase::making:
      if (has_failed) return clear();
      return start(Phase::joining, !is_first(), [this] { open_files(); });
    case Phase::joining:
      if (has_failed) return clear();
      phase_ = Phase::open;
      return;
    case Phase::writing:
      return has_failed ? clear() : commit();
    case Phase::committing:
      return has_failed ? clear() : end();
    case Phase::clearing:
      return end();
    case Phase::open:
    case Phase::over:
      return;
  }
}

void CheckpointSave::write_state() {
  write([this] {
    save_state(session_.run(), session_.state(), *writer_, session_.save_memory(), is_given_up_);
  });
}

void CheckpointSave::take_from_step() {
  session_.sink()->arm(*writer_);
  write([this] { session_.sink()->wait(); });
}

void CheckpointSave::give_up() {
  if (phase_ != Phase::writing) return;
  if (outcome_.failure.empty()) outcome_.failure = "it was given up";
  stop_writing();
}

// Whoever knows why tells.
void CheckpointSave::stop_writing() {
  if (phase_ != Phase::writing) return;
  is_given_up_ = true;
  if (session_.sink() != nullptr) session_.sink()->give_up();
}

void CheckpointSave::start(Phase phase, bool takes_part, std::function<void()> work) {
  phase_ = phase;
  if (takes_part) stage_.start(std::move(work));
}

void CheckpointSave::open_files() {
  writer_ = CheckpointWriter::open(engine_, config_.output_dir.string(), note_.step,
                                   state_vectors(session_.run()), is_first());
}

void CheckpointSave::write(std::function<void()> hand_over) {
  ensure(is_open());
  start(Phase::writing, true, [this, hand_over = std::move(hand_over)] {
    hand_over();
    if (!is_given_up_) pieces_ = writer_->finish();
  });
}

void CheckpointSave::commit() {
  pieces_ = pieces_of_ranks();
  start(Phase::committing, is_first(), [this] {
    // Before: whatever fails from here on, the best one that stands is known to be it.
    if (note_.held_out && keeps_best(config_))
      losses_.insert_or_assign(note_.step, *note_.held_out);
    outcome_.bytes = writer_->commit(pieces_, note_);
    if (!note_.held_out) losses_.erase(note_.step);
    end_ns_ = now_ns();
    outcome_.warning = after_commit();
  });
}

// The creator's writer removes what there is of the folder.
void CheckpointSave::clear() {
  start(Phase::clearing, true, [this] { writer_.reset(); });
}

void CheckpointSave::end() {
  phase_ = Phase::over;
  outcome_.seconds = seconds((end_ns_ > 0 ? end_ns_ : now_ns()) - begin_ns_);
}

// The best of all that stand, the new one among them.
std::optional<std::int64_t> CheckpointSave::kept_step() const {
  if (!keeps_best(config_)) return std::nullopt;
  HeldOutLosses standing;
  for (const CheckpointEntry& entry :
       list_checkpoints(engine_.file_system(), config_.output_dir.string()))
    if (const auto known = losses_.find(entry.step); known != losses_.end())
      standing.insert(*known);
  return best_step(standing);
}

// The new one is verified by now: what goes wrong here is told, and no reason to stop.
std::string CheckpointSave::after_commit() {
  try {
    if (config_.save_total_limit > 0)
      remove_old_checkpoints(engine_.file_system(), config_.output_dir.string(),
                             config_.save_total_limit, note_.step, kept_step());
  } catch (const std::exception& error) {
    return fmt::format("{} stands, but an old one may still be there: {}", outcome_.path,
                       error.what());
  }
  return "";
}

// Ranks have written different numbers of pieces: all are filled up to the most.
std::vector<StatePiece> CheckpointSave::pieces_of_ranks() const {
  const auto counts = session_.gather_over_ranks(std::vector<std::size_t>{pieces_.size()});
  const std::size_t most = *std::ranges::max_element(counts);
  std::vector<StatePiece> own = pieces_;
  own.resize(most);
  const std::vector<StatePiece> all = session_.gather_over_ranks(std::move(own));
  std::vector<StatePiece> pieces;
  for (std::size_t rank = 0; rank < counts.size(); ++rank) {
    const auto of_rank = std::span(all).subspan(rank * most, counts[rank]);
    pieces.insert(pieces.end(), of_rank.begin(), of_rank.end());
  }
  return pieces;
}

}  // namespace strata
