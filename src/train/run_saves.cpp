#include "train/run_saves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace strata {

RunSaves::RunSaves(const RunConfig& config, Session& session, Progress* progress)
    : config_(config), progress_(progress), checkpoints_(config, session) {
  if (progress != nullptr) report_to(*progress);
}

void RunSaves::begin(const RunNote& note, TrainOutcome& outcome) {
  wait_for_its_turn(note.step, outcome);
  if (!outcome.failure.empty()) return;
  cost_.begin();
  begun_step_ = note.step;
  if (const auto failed = checkpoints_.begin(note)) return tell(*failed, true, outcome);
  carries_ = true;
}

void RunSaves::save(const RunNote& note, TrainOutcome& outcome) {
  wait_for_its_turn(note.step, outcome);
  if (outcome.failure.empty()) tell(checkpoints_.save(note), false, outcome);
}

void RunSaves::save_last(const RunNote& note, TrainOutcome& outcome) {
  if (checkpoints_.can_give_way()) {
    event(
        fmt::format("the checkpoint of step {}, not all written yet, gives way to that of step {}",
                    begun_step_, note.step));
    checkpoints_.give_way();
  }
  finish(outcome);
  if (outcome.failure.empty()) tell(checkpoints_.save(note), false, outcome);
}

void RunSaves::finish(TrainOutcome& outcome) {
  if (checkpoints_.is_under_way()) tell(checkpoints_.complete(), true, outcome);
}

void RunSaves::took(double seconds) {
  if (checkpoints_.is_under_way())
    cost_.meanwhile(seconds);
  else
    cost_.plain(seconds);
  carries_ = false;
}

void RunSaves::agreed(const SaveVote& vote, TrainOutcome& outcome) {
  if (!checkpoints_.is_under_way()) return;
  if (const auto saved = checkpoints_.advance(vote)) tell(*saved, true, outcome);
}

void RunSaves::tell(const SaveOutcome& saved, bool went_along, TrainOutcome& outcome) {
  if (!saved.failure.empty()) return tell_failure(saved, outcome);
  saved_step_ = saved.step;
  bytes_written_ += saved.bytes;
  if (!went_along) slowest_seconds_ = std::max(slowest_seconds_, saved.seconds);
  outcome.checkpoint = saved.path;
  if (!saved.warning.empty()) event(saved.warning);
  if (progress_ != nullptr) progress_->saved(report(saved, went_along));
}

void RunSaves::tell_failure(const SaveOutcome& saved, TrainOutcome& outcome) {
  const std::string text = fmt::format("no checkpoint at step {}: {}", saved.step, saved.failure);
  event(text);
  if (config_.on_save_failure != SaveFailurePolicy::stop || !outcome.failure.empty()) return;
  outcome.failure = text + "; the run ends, for on_save_failure is stop";
}

void RunSaves::wait_for_its_turn(std::int64_t step, TrainOutcome& outcome) {
  if (!checkpoints_.is_under_way()) return;
  if (!std::exchange(has_told_of_waits_, true))
    event(
        fmt::format("step {} is to be saved while the checkpoint of step {} is still being "
                    "written: training waits for that one, as it will wherever this happens "
                    "again. Save less often, or to a faster drive",
                    step, begun_step_));
  finish(outcome);
}

SaveReport RunSaves::report(const SaveOutcome& saved, bool went_along) const {
  SaveReport report{saved.step, saved.path, saved.bytes, saved.seconds};
  report.bytes_total = bytes_written_;
  const auto extra = went_along ? cost_.extra() : std::nullopt;
  if (!extra) return report;
  report.steps_meanwhile = extra->steps;
  report.carrier_extra_seconds = extra->carrier_seconds;
  report.extra_seconds = extra->seconds;
  return report;
}

void RunSaves::event(const std::string& text) {
  if (progress_ != nullptr) progress_->event("save", text);
}

}  // namespace strata
