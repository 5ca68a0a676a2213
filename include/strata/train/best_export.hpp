#pragma once
// What a run with load_best_model_at_end exports when it has come to its end: the weights of the
// best checkpoint, read from there, for nothing follows that would need the state again; or the
// last ones, where no checkpoint is better. Thread contract: one thread per rank; every rank must
// make the same calls.

#include <filesystem>
#include <optional>
#include <string>

#include "strata/checkpoint/best_checkpoint.hpp"
#include "strata/core/byte_watch.hpp"
#include "strata/train/session.hpp"
#include "strata/train/trainer.hpp"

namespace strata {

class BestExport {
 public:
  BestExport(const RunConfig& config, Session& session, const TrainOutcome& outcome);

  // Else the weights are to be exported as they are.
  bool is_of_checkpoint() const { return is_of_checkpoint_; }
  // Which step is the best and with which loss, against the last one's. The first rank knows.
  const std::string& text() const { return text_; }
  // The first rank writes, and tells `watch` of the bytes; the others wait. Whether it is written:
  // else there is a failure, and the weights are to be exported as they are.
  bool write(const std::filesystem::path& target, const ByteWatch& watch = {});
  // Why the best is not known or not written, on all ranks; empty: it is.
  const std::string& failure() const { return failure_; }

 private:
  void choose(const TrainOutcome& outcome);
  void export_best(const std::filesystem::path& target, const ByteWatch& watch);
  template <typename Work>
  std::string why_not(Work work) const;

  const RunConfig& config_;
  Session& session_;
  std::optional<BestCheckpoint> best_;  // the first rank's, where it is to be exported
  std::string text_, failure_;
  bool is_of_checkpoint_ = false;
};

}  // namespace strata
