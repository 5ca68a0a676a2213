#pragma once
// AdamW: PyTorch's (decoupled decay, bias correction, eps outside the root), on tiles.
// Element-wise: any split into tiles gives the same bits. Weight decay skips norms and biases.
// Thread contract: immutable after construction; update() may run on several lanes for different
// tiles.

#include <vector>

#include "strata/kernels/kernels.hpp"
#include "strata/program/program.hpp"
#include "strata/program/step.hpp"

namespace strata {

struct AdamWConfig {
  double beta1 = 0.9, beta2 = 0.999;
  float epsilon = 1e-8f, weight_decay = 0;
};

// Elements [begin, end) of a block's vector that decay.
struct DecayRange {
  std::int64_t begin = 0, end = 0;
};

class AdamW : public UpdateRunner {
 public:
  // `decays[block]`: sorted, disjoint.
  AdamW(const AdamWConfig& config, std::vector<std::vector<DecayRange>> decays, Kernels& kernels);

  // Adds master and moment shards for every gradient shard, and the norm and update segments to the
  // end of `sequence`.
  static void declare(Program& program, Sequence& sequence);

  void update(const TileUpdate& tile, const UpdateHyper& hyper, const UpdateScalars& scalars,
              Stream& stream) override;

 private:
  AdamWConfig config_;
  std::vector<std::vector<DecayRange>> decays_;
  Kernels& kernels_;
};

}  // namespace strata
