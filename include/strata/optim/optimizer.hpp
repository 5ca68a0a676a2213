#pragma once
// An optimizer of the family that strata/kernels/update.hpp computes: which state it keeps for a
// weight, in which formats, and its pass over one tile. Element-wise: any split into tiles gives
// the same bits. Weight decay skips norms and biases. Thread contract: immutable after
// construction; update() may run on several lanes for different tiles.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strata/kernels/kernels.hpp"
#include "strata/program/program.hpp"
#include "strata/program/step.hpp"

namespace strata {

enum class MasterFormat : std::uint8_t {
  f32,
  split,  // the bf16 working weight and the 16 low bits: as exact as f32, two bytes fewer
};

struct OptimizerConfig {
  UpdateRule rule = UpdateRule::adamw;
  double beta1 = 0.9, beta2 = 0.999;  // sgd: beta1 is the momentum
  double epsilon = 1e-8, weight_decay = 0;
  MasterFormat master = MasterFormat::f32;
  DType moments = DType::f32;  // bf16 and q8 are approximate
  std::uint64_t seed = 0;      // of stochastic rounding
};

// "adamw", "adam", "sgd" or "lion". Throws ConfigError with the known names.
UpdateRule parse_update_rule(std::string_view name);
std::string_view update_rule_name(UpdateRule rule);

// Whether a run with this state gives the bits of one with fp32 state.
bool is_exact(const OptimizerConfig& config);
// "adamw, master split (exact), moments q8 (approximate), 4.03 bytes of state per parameter".
std::string describe(const OptimizerConfig& config);

// One shard of state beside each weight.
struct StateShard {
  Role role = Role::master;
  DType dtype = DType::f32;
};
std::vector<StateShard> state_shards(const OptimizerConfig& config);

// Bytes a parameter's state takes at home, the working weight apart, and bytes one pass over it
// moves: gradient, state and working weight. Scales of 8-bit moments included.
double state_bytes_per_parameter(const OptimizerConfig& config);
double pass_bytes_per_parameter(const OptimizerConfig& config, DType gradient, DType weight);

class Optimizer : public UpdateRunner {
 public:
  // `decays[block]`: sorted, disjoint.
  Optimizer(const OptimizerConfig& config, std::vector<std::vector<DecayRange>> decays,
            Kernels& kernels);

  // Adds the state shards for every gradient shard, and the norm and update segments to the end of
  // `sequence`. An update's uses: gradient, then state in the order of state_shards(), then weight.
  static void declare(const OptimizerConfig& config, Program& program, Sequence& sequence);

  void update(const TileUpdate& tile, const UpdateHyper& hyper, const UpdateScalars& scalars,
              Stream& stream) override;

 private:
  OptimizerConfig config_;
  std::vector<std::vector<DecayRange>> decays_;
  Kernels& kernels_;
};

}  // namespace strata
