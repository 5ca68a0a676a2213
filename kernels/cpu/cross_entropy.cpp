#include "kernels/cpu/cross_entropy.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/common/cross_entropy_checks.hpp"
#include "kernels/cpu/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/cross_entropy.cpp"
// clang-format off: what is compiled once per target comes after foreach_target.h.
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/elements-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

constexpr std::int64_t sum_block = 4096;  // Summed in fp32; blocks are added in double.

// The largest logit, or NaN if there is one: Max and Exp would both lose it.
HWY_INLINE float max_logit(const float* logits, std::int64_t v) {
  const FloatTag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto largest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto poison = hn::Zero(d);
  std::int64_t j = 0;
  for (; j + lanes <= v; j += lanes) {
    const auto x = hn::LoadU(d, logits + j);
    largest = hn::Max(largest, x);
    poison = hn::IfThenElse(hn::IsNaN(x), x, poison);
  }
  float result = hn::GetLane(hn::MaxOfLanes(d, largest));
  float nan = hn::GetLane(hn::SumOfLanes(d, poison));
  for (; j < v; ++j) {
    result = std::max(result, logits[j]);
    if (std::isnan(logits[j])) nan = logits[j];
  }
  return result + nan;
}

// logits = exp(logits - largest); returns their sum.
HWY_INLINE double exponentiate(float* logits, std::int64_t v, float largest) {
  double total = 0;
  for (std::int64_t begin = 0; begin < v; begin += sum_block) {
    total += static_cast<double>(
        sum_vectors(begin, std::min(v, begin + sum_block), [&](auto d, std::int64_t j) HWY_ATTR {
          const auto e = hn::Exp(d, hn::Sub(hn::LoadU(d, logits + j), hn::Set(d, largest)));
          hn::StoreU(e, d, logits + j);
          return e;
        }));
  }
  return total;
}

template <class T>
HWY_INLINE void scale_row(const float* exponentials, std::int64_t v, float factor, T* out) {
  for_each_vector(0, v, [&](auto d, std::int64_t j) HWY_ATTR {
    store(d, hn::Mul(hn::LoadU(d, exponentials + j), hn::Set(d, factor)), out + j);
  });
}

// dlogits = scale (softmax - [j is the label]); the label's own element is computed in double.
void write_gradient(const float* exponentials, std::int64_t label, double total, double scale,
                    TensorView dlogits_v) {
  const double at_label = scale * (static_cast<double>(exponentials[label]) / total - 1);
  with_element(dlogits_v.dtype, [&](auto* type) HWY_ATTR {
    auto* out = dlogits_v.as<std::remove_pointer_t<decltype(type)>>();
    scale_row(exponentials, dlogits_v.count(), static_cast<float>(scale / total), out);
    store(OneTag(), hn::Set(OneTag(), static_cast<float>(at_label)), out + label);
  });
}

// One token: returns its scaled loss and writes its row of the gradient unless that is empty.
float cross_entropy_row(float* logits, std::int64_t v, std::int64_t label, double scale,
                        TensorView dlogits_v) {
  const float largest = max_logit(logits, v);
  const double above = static_cast<double>(largest) - static_cast<double>(logits[label]);
  const double total = exponentiate(logits, v, largest);
  if (!dlogits_v.empty()) write_gradient(logits, label, total, scale, dlogits_v);
  return static_cast<float>(scale * (std::log(total) + above));
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::cpu {
namespace {

HWY_EXPORT(cross_entropy_row);

TensorView gradient_row(const CrossEntropyArgs& args, std::int64_t row) {
  const std::int64_t v = args.logits_cv.dim(1);
  return args.dlogits_cv.empty() ? TensorView{} : args.dlogits_cv.slice(row * v, {v});
}

float token_loss(const CrossEntropyArgs& args, std::int64_t row) {
  const std::int64_t v = args.logits_cv.dim(1);
  const std::int64_t label = args.labels_c.as<const std::int32_t>()[row];
  const TensorView dlogits_v = gradient_row(args, row);
  ensure(label < v);
  if (label >= 0) {
    float* logits = args.logits_cv.as<float>() + row * v;
    return HWY_DYNAMIC_DISPATCH(cross_entropy_row)(logits, v, label, args.scale, dlogits_v);
  }
  if (!dlogits_v.empty())
    std::memset(dlogits_v.data, 0, static_cast<std::size_t>(dlogits_v.bytes()));
  return 0;
}

}  // namespace

void cross_entropy(Parallel& parallel, const CrossEntropyArgs& args) {
  check_cross_entropy(args);
  parallel.for_each(args.logits_cv.dim(0), [&](std::int64_t row) {
    args.losses_c.as<float>()[row] = token_loss(args, row);
  });
}

}  // namespace strata::cpu
#endif
