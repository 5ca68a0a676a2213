#pragma once
// What an optimizer pass multiplies with, derived from its arguments once per call. Every engine
// takes these, so that none rounds them differently. Doubles are rounded to float once, here.

#include <cmath>

#include "strata/kernels/update.hpp"

namespace strata {

struct UpdateFactors {
  float gradient_scale;
  float decay;          // decoupled: 1 - learning_rate * weight_decay
  float coupled_decay;  // weight_decay
  float learning_rate;
  float beta1;
  float beta1_complement;  // 1 - beta1
  float beta2;
  float beta2_complement;  // 1 - beta2
  float rate;              // bias-corrected
  float epsilon;           // bias-corrected
};

inline UpdateFactors update_factors(const UpdateArgs& args) {
  const auto step = static_cast<double>(args.step);
  const double correction1 = 1 - std::pow(args.beta1, step);
  const double correction2 = std::sqrt(1 - std::pow(args.beta2, step));
  return {.gradient_scale = args.gradient_scale,
          .decay = static_cast<float>(1 - args.learning_rate * args.weight_decay),
          .coupled_decay = static_cast<float>(args.weight_decay),
          .learning_rate = static_cast<float>(args.learning_rate),
          .beta1 = static_cast<float>(args.beta1),
          .beta1_complement = static_cast<float>(1 - args.beta1),
          .beta2 = static_cast<float>(args.beta2),
          .beta2_complement = static_cast<float>(1 - args.beta2),
          .rate = static_cast<float>(args.learning_rate * correction2 / correction1),
          .epsilon = static_cast<float>(args.epsilon * correction2)};
}
// For elements that do not decay.
constexpr UpdateFactors without_decay(UpdateFactors factors) {
  factors.decay = 1;
  factors.coupled_decay = 0;
  return factors;
}

}  // namespace strata
