#pragma once
// Trains a small model on the host device with links, a drive, compute, optimizer and collectives
// slowed to stated rates (no CPU is burned: everything sleeps out its time), each step predicted
// and measured. Several ranks are threads of this process, as in a run.

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "bench/paced/paced_machine.hpp"
#include "strata/telemetry/roofline.hpp"
#include "strata/train/planned_ranks.hpp"

namespace strata::bench {

struct PacedResult {
  std::vector<Roofline> ranks;  // medians of each rank's steps; all predict the same
  std::vector<double> losses;

  const Roofline::Prediction& predicted() const { return *ranks.front().predicted; }
  double predicted_seconds() const { return predicted().use.seconds; }
  // The median over the ranks.
  double measured_seconds() const;
  double measured_busy(Resource resource) const;
  double measured_wait(Resource resource) const;
};

class PacedTraining {
 public:
  // `tokens` of each micro-batch.
  PacedTraining(const PacedRates& rates, std::int64_t steps, std::int64_t tokens);

  // What a configuration starts from: one rank, one micro-batch.
  RunConfig base() const { return base_; }
  // Runs `config.world` ranks.
  PacedResult run(RunConfig config) const;

 private:
  struct Job;
  Roofline train_rank(const Job& job, RankLinks& links) const;
  ExecutorOptions paced_ops(const Program& program) const;
  EngineFactory paced_drive() const;

  const PacedRates rates_;
  RunConfig base_;
};

// Losses that must not differ: those of one shape of a step, wherever things live.
class KnownLosses {
 public:
  // Whether they are those of the runs of this shape before.
  bool same(const RunConfig& config, const std::vector<double>& losses);

 private:
  using Shape = std::tuple<int, std::int64_t, double>;  // ranks, micro-batches, clipping
  std::map<Shape, std::vector<double>> known_;
};

}  // namespace strata::bench
