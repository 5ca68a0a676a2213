#pragma once
// What an AdamW pass multiplies with, derived from its arguments once per call. Every engine takes
// these, so that none rounds them differently. Doubles are rounded to float once, here.

#include "strata/kernels/kernels.hpp"

namespace strata {

struct AdamWFactors {
  float gradient_scale;
  float decay;             // 1 - learning_rate * weight_decay
  float beta1_complement;  // 1 - beta1
  float beta2;
  float beta2_complement;  // 1 - beta2
  float step_size;         // learning_rate / bias_correction1
  float bias_correction2_sqrt;
  float epsilon;
};

inline AdamWFactors adamw_factors(const AdamWArgs& args) {
  const double decay =
      1.0 - static_cast<double>(args.learning_rate) * static_cast<double>(args.weight_decay);
  return {.gradient_scale = args.gradient_scale,
          .decay = static_cast<float>(decay),
          .beta1_complement = static_cast<float>(1.0 - args.beta1),
          .beta2 = static_cast<float>(args.beta2),
          .beta2_complement = static_cast<float>(1.0 - args.beta2),
          .step_size = args.learning_rate / args.bias_correction1,
          .bias_correction2_sqrt = args.bias_correction2_sqrt,
          .epsilon = args.epsilon};
}

}  // namespace strata
