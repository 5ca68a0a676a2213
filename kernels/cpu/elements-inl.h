// Elements of a tensor as vectors of float, whatever the storage: f32 or bf16. Included once per
// SIMD target.

#if defined(STRATA_KERNELS_CPU_ELEMENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_ELEMENTS_INL_H_
#undef STRATA_KERNELS_CPU_ELEMENTS_INL_H_
#else
#define STRATA_KERNELS_CPU_ELEMENTS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "strata/core/tensor_view.hpp"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using OneTag = hn::CappedTag<float, 1>;  // The tail of a row, one element at a time.

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  return hn::LoadU(d, from);
}

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const bfloat16* from) {
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}

template <class D, class V32>
HWY_INLINE void store_high_half(D, V32 bits, bfloat16* to) {
  const hn::Rebind<std::uint16_t, D> d16;
  hn::StoreU(hn::TruncateTo(d16, hn::ShiftRight<16>(bits)), d16,
             reinterpret_cast<std::uint16_t*>(to));
}

// Stores as to_float() and to_bfloat16() of core/dtype.hpp do.
template <class D>
HWY_INLINE void store(D d, hn::Vec<D> v, float* to) {
  hn::StoreU(v, d, to);
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> v, bfloat16* to) {
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::BitCast(d32, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7fff)));
  const auto quiet = hn::Or(bits, hn::Set(d32, 0x400000));
  const auto is_nan = hn::RebindMask(d32, hn::IsNaN(v));
  store_high_half(d, hn::IfThenElse(is_nan, quiet, rounded), to);
}

// Stores as weight_to_bfloat16() does.
template <class D>
HWY_INLINE void store_weight(D d, hn::Vec<D> v, float* to) {
  hn::StoreU(v, d, to);
}

template <class D>
HWY_INLINE void store_weight(D d, hn::Vec<D> v, bfloat16* to) {
  const hn::RebindToUnsigned<D> d32;
  store_high_half(d, hn::Add(hn::BitCast(d32, v), hn::Set(d32, 0x8000)), to);
}

// Calls f(tag, i) so that whole vectors, then single elements, cover [begin, end).
template <class F>
HWY_INLINE void for_each_vector(std::int64_t begin, std::int64_t end, F f) {
  const FloatTag d;
  const OneTag one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = begin;
  for (; i + lanes <= end; i += lanes) f(d, i);
  for (; i < end; ++i) f(one, i);
}

// The sum of what f(tag, i) returns over [begin, end), in fp32 and in an order fixed by the length
// and the target.
template <class F>
HWY_INLINE float sum_vectors(std::int64_t begin, std::int64_t end, F f) {
  const FloatTag d;
  const OneTag one;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0,
       sum3 = sum0;  // Four, to hide the latency of the addition.
  std::int64_t i = begin;
  for (; i + 4 * lanes <= end; i += 4 * lanes) {
    sum0 = hn::Add(sum0, f(d, i));
    sum1 = hn::Add(sum1, f(d, i + lanes));
    sum2 = hn::Add(sum2, f(d, i + 2 * lanes));
    sum3 = hn::Add(sum3, f(d, i + 3 * lanes));
  }
  for (; i + lanes <= end; i += lanes) sum0 = hn::Add(sum0, f(d, i));
  auto tail = hn::Zero(one);
  for (; i < end; ++i) tail = hn::Add(tail, f(one, i));
  const auto total = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  return hn::GetLane(hn::SumOfLanes(d, total)) + hn::GetLane(tail);
}

// Calls f with a null pointer of the element type, so that f is compiled for each.
template <class F>
HWY_INLINE void with_element(DType dtype, F f) {
  ensure(dtype == DType::f32 || dtype == DType::bf16);
  if (dtype == DType::f32) {
    f(static_cast<float*>(nullptr));
  } else {
    f(static_cast<bfloat16*>(nullptr));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#endif
