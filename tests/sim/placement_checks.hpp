#pragma once
// What must hold for any configuration of a run: where things live, and in which legal order they
// are worked on, never changes a bit.

#include <gtest/gtest.h>

#include <string>

#include "sim/tiny_training.hpp"

namespace strata::testing {

// `plain`: what `config` gives with everything in host memory, one op after the other.
class PlacementChecks {
 public:
  PlacementChecks(RunConfig config, const Outcome& plain)
      : config_(std::move(config)), plain_(plain) {}

  void expect_plain_bits(const RunConfig& config, const ExecutorOptions& options,
                         const std::string& what) const {
    EXPECT_EQ(difference(plain_, train(config, options)), "") << what;
  }

  // Seeds [first, first + count) say where things live.
  void on_threads(std::uint64_t first, int count) const {
    for (int i = 0; i < count; ++i)
      expect_plain_bits(placed(first, i), {}, "placement " + std::to_string(i));
  }
  void in_legal_orders(std::uint64_t first, int count) const {
    for (int i = 0; i < count; ++i)
      expect_plain_bits(placed(first, i),
                        {ExecutionMode::seeded, static_cast<std::uint64_t>(i), Poison::on},
                        "order " + std::to_string(i));
  }

  // Everything in one tier.
  RunConfig all_in(const TierFractions& tier) const {
    RunConfig config = config_;
    OffloadConfig& o = config.offload;
    for (TierFractions* role :
         {&o.weights, &o.gradients, &o.master, &o.moment1, &o.moment2, &o.activations, &o.saved})
      *role = tier;
    return config;
  }

  // Layers that keep their insides, on one tier or spread over all.
  void layers_kept() const {
    RunConfig config = config_;
    for (const TierFractions saved : {TierFractions{1, 0, 0}, TierFractions{0, 1, 0},
                                      TierFractions{0, 0, 1}, TierFractions{0.4, 0.3, 0.3}})
      for (const std::int64_t kept : {std::int64_t{1}, all_layers}) {
        config.offload.saved = saved;
        config.offload.keep_layers = kept;
        const std::string what = "keeps " + std::to_string(kept) + " on gpu " +
                                 std::to_string(saved.device) + " cpu " +
                                 std::to_string(saved.host);
        expect_plain_bits(config, {}, what);
        expect_plain_bits(config, {ExecutionMode::seeded, 7, Poison::on}, what);
      }
  }

  // Without clipping, updates that run during backward against those that run after it.
  void updates_during_backward(std::uint64_t first, int count) const {
    RunConfig config = config_;
    config.max_grad_norm = 0;
    config.offload.update_order = "after_backward";
    const Outcome after = train(config, {ExecutionMode::serial});
    config.offload.update_order = "during_backward";
    for (int i = 0; i < count; ++i) {
      place_randomly(config, first + static_cast<std::uint64_t>(i));
      const ExecutionMode mode = i % 2 == 0 ? ExecutionMode::threaded : ExecutionMode::seeded;
      EXPECT_EQ(difference(after, train(config, {mode, static_cast<std::uint64_t>(i)})), "")
          << "placement " << i;
    }
  }

 private:
  RunConfig placed(std::uint64_t first, int i) const {
    RunConfig config = config_;
    place_randomly(config, first + static_cast<std::uint64_t>(i));
    return config;
  }

  const RunConfig config_;
  const Outcome& plain_;
};

}  // namespace strata::testing
