#include "strata/train/best_export.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "strata/core/error.hpp"
#include "strata/train/checkpoint_export.hpp"
#include "train/heartbeat.hpp"
#include "train/run_note.hpp"
#include "train/weights_io.hpp"

namespace strata {
namespace {

std::string loss_of(const Evaluation& last) {
  return last.tokens == 0 ? "it was not taken" : fmt::format("it is {:.4f}", last.loss);
}

}  // namespace

// What the first rank does alone. The last weights are there: its failure is no reason to lose
// them.
template <typename Work>
std::string BestExport::why_not(Work work) const {
  std::string failure;
  if (session_.run().program.rank == 0) {
    try {
      work();
    } catch (const Error& error) {
      failure = error.what();
    }
  }
  // Until the first rank no longer says that it is at it.
  while (session_.any_rank(false)) {
  }
  return session_.first_of_ranks(failure);
}

BestExport::BestExport(const RunConfig& config, Session& session, const TrainOutcome& outcome)
    : config_(config), session_(session) {
  failure_ = why_not([&] { choose(outcome); });
  is_of_checkpoint_ = session.any_rank(best_.has_value());
  if (!failure_.empty())
    failure_ = fmt::format("the best checkpoint is not known, so the last weights are exported: {}",
                           failure_);
}

// Of equals the earlier, which is never the last weights.
void BestExport::choose(const TrainOutcome& outcome) {
  auto best = best_checkpoint(session_.engine(), config_.output_dir.string(),
                              held_out_fingerprint(config_));
  const Evaluation& last = outcome.held_out_after;
  if (!best) {
    text_ = "the last weights: no checkpoint stands whose held-out loss was taken";
  } else if (best->entry.step == outcome.steps) {
    text_ =
        fmt::format("the last step, {}: held-out loss {:.4f}", outcome.steps, best->held_out.loss);
  } else if (last.tokens > 0 && last.loss < best->held_out.loss) {
    text_ = fmt::format("the last step, {}: held-out loss {:.4f}, against {:.4f} of {}",
                        outcome.steps, last.loss, best->held_out.loss, best->entry.path);
  } else {
    text_ = fmt::format("step {}: held-out loss {:.4f}; after the last step, {}, {}",
                        best->entry.step, best->held_out.loss, outcome.steps, loss_of(last));
    best_ = std::move(best);
  }
}

bool BestExport::write(const std::filesystem::path& target, const ByteWatch& watch) {
  failure_ = why_not([&] { export_best(target, watch); });
  if (failure_.empty()) return true;
  failure_ = fmt::format(
      "the best checkpoint's weights could not be exported, so the last ones are: {}", failure_);
  return false;
}

void BestExport::export_best(const std::filesystem::path& target, const ByteWatch& watch) {
  const Heartbeat heartbeat(beat_pause, [this] { session_.any_rank(true); });
  export_checkpoint(*CheckpointReader::open(session_.engine(), best_->entry.path),
                    config_.model_name_or_path, target, exported_dtype(config_, session_.run()),
                    watch);
}

}  // namespace strata
