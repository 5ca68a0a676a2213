#pragma once
// Where configurations of a run put its state. Thread contract: pure.

#include "strata/train/run_config.hpp"

namespace strata::bench {

inline constexpr TierFractions gpu{1, 0, 0}, cpu{0, 1, 0}, nvme{0, 0, 1};

inline void optimizer_on(RunConfig& config, const TierFractions& where) {
  config.offload.master = config.offload.moment1 = config.offload.moment2 = where;
}

inline void all_on(RunConfig& config, const TierFractions& where) {
  config.offload.weights = config.offload.gradients = config.offload.activations = where;
  optimizer_on(config, where);
}

// Of everything that a step moves through.
inline void slots(RunConfig& config, int count) {
  config.offload.weight_slots = config.offload.gradient_slots = count;
  config.offload.state_slots = config.offload.staging_slots = count;
}

inline void accumulate(RunConfig& config, int micro_batches, int group) {
  config.gradient_accumulation_steps = micro_batches;
  config.offload.accumulation_group = group;
}

}  // namespace strata::bench
