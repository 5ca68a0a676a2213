#pragma once
// AdamW with fp32 state: PyTorch's (decoupled decay, bias correction, eps outside the root).

#include <vector>

#include "strata/optim/optimizer.hpp"

namespace strata {

struct AdamWConfig {
  double beta1 = 0.9, beta2 = 0.999;
  float epsilon = 1e-8f, weight_decay = 0;
};

class AdamW : public Optimizer {
 public:
  AdamW(const AdamWConfig& config, std::vector<std::vector<DecayRange>> decays, Kernels& kernels);

  // Adds master and moment shards for every gradient shard, and the norm and update segments to the
  // end of `sequence`.
  static void declare(Program& program, Sequence& sequence);
};

}  // namespace strata
