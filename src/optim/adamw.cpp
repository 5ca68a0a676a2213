#include "strata/optim/adamw.hpp"

namespace strata {
namespace {

OptimizerConfig with_fp32_state(const AdamWConfig& config) {
  return {.beta1 = config.beta1,
          .beta2 = config.beta2,
          .epsilon = static_cast<double>(config.epsilon),
          .weight_decay = static_cast<double>(config.weight_decay)};
}

}  // namespace

AdamW::AdamW(const AdamWConfig& config, std::vector<std::vector<DecayRange>> decays,
             Kernels& kernels)
    : Optimizer(with_fp32_state(config), std::move(decays), kernels) {}

void AdamW::declare(Program& program, Sequence& sequence) {
  Optimizer::declare({}, program, sequence);
}

}  // namespace strata
