#include "kernels/cpu/adamw.hpp"

#include "kernels/common/adamw_factors.hpp"
#include "kernels/cpu/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

// One vector of parameters. Each operation rounds once: no MulAdd here, whatever the target offers.
template <class D, class G, class W>
HWY_INLINE void adamw_vector(D d, const AdamWFactors& factors, const G* gradient, float* master,
                             float* moment1, float* moment2, W* weight) {
  const auto g = hn::Mul(load(d, gradient), hn::Set(d, factors.gradient_scale));
  const auto decayed = hn::Mul(load(d, master), hn::Set(d, factors.decay));
  const auto m0 = load(d, moment1);
  const auto m = hn::Add(m0, hn::Mul(hn::Sub(g, m0), hn::Set(d, factors.beta1_complement)));
  const auto v = hn::Add(hn::Mul(load(d, moment2), hn::Set(d, factors.beta2)),
                         hn::Mul(hn::Mul(g, g), hn::Set(d, factors.beta2_complement)));
  const auto root = hn::Div(hn::Sqrt(v), hn::Set(d, factors.bias_correction2_sqrt));
  const auto ratio = hn::Div(m, hn::Add(root, hn::Set(d, factors.epsilon)));
  const auto p = hn::Sub(decayed, hn::Mul(hn::Set(d, factors.step_size), ratio));
  store(d, m, moment1);
  store(d, v, moment2);
  store(d, p, master);
  if (weight != nullptr) store_weight(d, p, weight);
}

template <class G, class W>
HWY_INLINE void adamw_range(const AdamWFactors& factors, const G* gradient, float* master,
                            float* moment1, float* moment2, W* weight, std::int64_t begin,
                            std::int64_t end) {
  for_each_vector(begin, end, [&](auto d, std::int64_t i) HWY_ATTR {
    adamw_vector(d, factors, gradient + i, master + i, moment1 + i, moment2 + i,
                 weight == nullptr ? weight : weight + i);
  });
}

void adamw_chunk(const AdamWArgs& args, const AdamWFactors& factors, std::int64_t begin,
                 std::int64_t end) {
  with_element(args.gradient.dtype, [&](auto* g) HWY_ATTR {
    using G = std::remove_pointer_t<decltype(g)>;
    with_element(args.weight.dtype, [&](auto* w) HWY_ATTR {
      using W = std::remove_pointer_t<decltype(w)>;
      adamw_range(factors, args.gradient.as<const G>(), args.master.as<float>(),
                  args.moment1.as<float>(), args.moment2.as<float>(), args.weight.as<W>(), begin,
                  end);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::cpu {
namespace {

HWY_EXPORT(adamw_chunk);

// Small enough to balance a tile over many cores, large enough to keep the prefetchers running.
constexpr std::int64_t chunk_elements = 64 * 1024;

void check_shapes(const AdamWArgs& args) {
  const std::int64_t count = args.master.count();
  ensure(args.gradient.count() == count && args.moment1.count() == count &&
         args.moment2.count() == count);
  ensure(args.weight.empty() || args.weight.count() == count);
  ensure(args.master.dtype == DType::f32 && args.moment1.dtype == DType::f32 &&
         args.moment2.dtype == DType::f32);
}

}  // namespace

void adamw(Parallel& parallel, const AdamWArgs& args) {
  check_shapes(args);
  const AdamWFactors factors = adamw_factors(args);
  parallel.for_chunks(args.master.count(), chunk_elements,
                      [&](std::int64_t begin, std::int64_t end) {
                        HWY_DYNAMIC_DISPATCH(adamw_chunk)(args, factors, begin, end);
                      });
}

}  // namespace strata::cpu
#endif
