// The formulas of strata/kernels/update.hpp on vectors. Each operation rounds once: no MulAdd here,
// whatever the target offers. Included once per SIMD target.

#if defined(STRATA_KERNELS_CPU_UPDATE_RULES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_UPDATE_RULES_INL_H_
#undef STRATA_KERNELS_CPU_UPDATE_RULES_INL_H_
#else
#define STRATA_KERNELS_CPU_UPDATE_RULES_INL_H_
#endif

#include "hwy/highway.h"
#include "kernels/common/update_factors.hpp"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// m + (g - m) * share
template <class D>
HWY_INLINE hn::Vec<D> drawn_towards(D d, hn::Vec<D> m, hn::Vec<D> g, float share) {
  return hn::Add(m, hn::Mul(hn::Sub(g, m), hn::Set(d, share)));
}

template <class D>
HWY_INLINE void adam_step(D d, const UpdateFactors& f, hn::Vec<D> g, hn::Vec<D>& p, hn::Vec<D>& m,
                          hn::Vec<D>& v) {
  m = drawn_towards(d, m, g, f.beta1_complement);
  v = hn::Add(hn::Mul(v, hn::Set(d, f.beta2)),
              hn::Mul(hn::Mul(g, g), hn::Set(d, f.beta2_complement)));
  const auto root = hn::Add(hn::Sqrt(v), hn::Set(d, f.epsilon));
  p = hn::Sub(p, hn::Mul(hn::Set(d, f.rate), hn::Div(m, root)));
}

template <class D>
HWY_INLINE hn::Vec<D> with_coupled_decay(D d, const UpdateFactors& f, hn::Vec<D> g, hn::Vec<D> p) {
  return hn::Add(g, hn::Mul(p, hn::Set(d, f.coupled_decay)));
}

struct AdamWRule {
  static constexpr bool two_moments = true;
  template <class D>
  static HWY_INLINE void apply(D d, const UpdateFactors& f, hn::Vec<D> g, hn::Vec<D>& p,
                               hn::Vec<D>& m, hn::Vec<D>& v) {
    p = hn::Mul(p, hn::Set(d, f.decay));
    adam_step(d, f, g, p, m, v);
  }
};

struct AdamRule {
  static constexpr bool two_moments = true;
  template <class D>
  static HWY_INLINE void apply(D d, const UpdateFactors& f, hn::Vec<D> g, hn::Vec<D>& p,
                               hn::Vec<D>& m, hn::Vec<D>& v) {
    adam_step(d, f, with_coupled_decay(d, f, g, p), p, m, v);
  }
};

struct SgdRule {
  static constexpr bool two_moments = false;
  template <class D>
  static HWY_INLINE void apply(D d, const UpdateFactors& f, hn::Vec<D> g, hn::Vec<D>& p,
                               hn::Vec<D>& m, hn::Vec<D>&) {
    m = hn::Add(hn::Mul(m, hn::Set(d, f.beta1)), with_coupled_decay(d, f, g, p));
    p = hn::Sub(p, hn::Mul(hn::Set(d, f.learning_rate), m));
  }
};

struct LionRule {
  static constexpr bool two_moments = false;
  template <class D>
  static HWY_INLINE void apply(D d, const UpdateFactors& f, hn::Vec<D> g, hn::Vec<D>& p,
                               hn::Vec<D>& m, hn::Vec<D>&) {
    const auto zero = hn::Zero(d);
    const auto x = drawn_towards(d, m, g, f.beta1_complement);
    const auto has_sign = hn::Or(hn::Lt(x, zero), hn::Gt(x, zero));
    const auto sign = hn::IfThenElse(has_sign, hn::CopySign(hn::Set(d, 1.0f), x), x);
    p = hn::Sub(hn::Mul(p, hn::Set(d, f.decay)), hn::Mul(hn::Set(d, f.learning_rate), sign));
    m = drawn_towards(d, m, g, f.beta2_complement);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#endif
