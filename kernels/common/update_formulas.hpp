#pragma once
// The formulas of update.hpp, element by element, for the reference and for GPUs: plain fp32
// operations in the order written, which no compiler of ours may fuse (-ffp-contract=off,
// -fmad=false). Templates (F is float) because they are constexpr, which lets them run on a device,
// and a square root is not.

#include <cmath>
#include <cstdint>

#include "kernels/common/update_factors.hpp"

namespace strata {

template <class F>
struct UpdateElement {
  F p, m, v;
};

template <class F>
constexpr F drawn_towards(F m, F g, F share) {
  return m + (g - m) * share;
}

template <class F>
constexpr void adam_step(const UpdateFactors& f, F g, UpdateElement<F>& e) {
  e.m = drawn_towards(e.m, g, f.beta1_complement);
  e.v = e.v * f.beta2 + (g * g) * f.beta2_complement;
  e.p = e.p - f.rate * (e.m / (std::sqrt(e.v) + f.epsilon));
}

template <class F>
constexpr void sgd_step(const UpdateFactors& f, F g, UpdateElement<F>& e) {
  e.m = e.m * f.beta1 + g;
  e.p = e.p - f.learning_rate * e.m;
}

// Zeros and NaNs are their own sign.
template <class F>
constexpr F sign_of(F x) {
  return x < 0 || x > 0 ? std::copysign(F{1}, x) : x;
}

template <class F>
constexpr void lion_step(const UpdateFactors& f, F g, UpdateElement<F>& e) {
  e.p = e.p - f.learning_rate * sign_of(drawn_towards(e.m, g, f.beta1_complement));
  e.m = drawn_towards(e.m, g, f.beta2_complement);
}

template <class F>
constexpr void update_element(UpdateRule rule, const UpdateFactors& f, F gradient,
                              UpdateElement<F>& e) {
  const F g = gradient * f.gradient_scale;
  switch (rule) {
    case UpdateRule::adamw:
      e.p = e.p * f.decay;
      return adam_step(f, g, e);
    case UpdateRule::adam:
      return adam_step(f, g + e.p * f.coupled_decay, e);
    case UpdateRule::sgd:
      return sgd_step(f, g + e.p * f.coupled_decay, e);
    case UpdateRule::lion:
      e.p = e.p * f.decay;
      return lion_step(f, g, e);
  }
}

}  // namespace strata
