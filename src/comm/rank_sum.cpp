#include "comm/rank_sum.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "comm/bulk_copy.hpp"
#include "strata/core/error.hpp"
#include "strata/core/ieee_environment.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/comm/rank_sum.cpp"
#include "hwy/foreach_target.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace strata {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using SumSources = std::span<const std::byte* const>;

template <typename T>
using SumTag = hn::ScalableTag<std::conditional_t<std::is_same_v<T, double>, double, float>>;

template <class D, typename T>
HWY_INLINE hn::Vec<D> load_terms(D d, const T* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> load_terms(D d, const bfloat16* from) {
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, bits)));
}

// Which operand's NaN an addition hands on differs between processors, and compilers swap operands.
template <class D>
HWY_INLINE hn::Vec<D> plain(D d, hn::Vec<D> sum) {
  const auto nan = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::quiet_NaN());
  return hn::IfThenElse(hn::IsNaN(sum), nan, sum);
}

// To nearest even, as to_bfloat16(): the quiet NaN's low bits are zero, so rounding keeps it.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> rounded(D d, hn::Vec<D> sum) {
  const hn::Rebind<std::uint16_t, D> d16;
  const hn::RebindToUnsigned<D> d32;
  const auto bits = hn::BitCast(d32, plain(d, sum));
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1));
  const auto nearest = hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7fff)));
  return hn::TruncateTo(d16, hn::ShiftRight<16>(nearest));
}

// Less than 16 bytes cannot go past the caches.
template <bool past_caches, class D, typename U>
HWY_INLINE void store_vector(D d, hn::Vec<D> values, U* to) {
  if constexpr (past_caches && hn::MaxLanes(D()) * sizeof(U) >= 16)
    hn::Stream(values, d, to);
  else
    hn::StoreU(values, d, to);
}

template <bool past_caches, class D, typename T>
HWY_INLINE void store_sums(D d, hn::Vec<D> sums, T* to) {
  store_vector<past_caches>(d, plain(d, sums), to);
}
template <bool past_caches, class D>
HWY_INLINE void store_sums(D d, hn::Vec<D> sums, bfloat16* to) {
  const hn::Rebind<std::uint16_t, D> d16;
  store_vector<past_caches>(d16, rounded(d, sums), reinterpret_cast<std::uint16_t*>(to));
}

// Four vectors of sums from element `i` on, held in registers: each source is read once.
template <bool past_caches, typename T>
HWY_INLINE void sum_vectors(SumSources sources, T* result, std::int64_t i) {
  const SumTag<T> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const T* from = reinterpret_cast<const T*>(sources.front()) + i;
  auto s0 = load_terms(d, from), s1 = load_terms(d, from + n);
  auto s2 = load_terms(d, from + 2 * n), s3 = load_terms(d, from + 3 * n);
  for (std::size_t rank = 1; rank < sources.size(); ++rank) {
    from = reinterpret_cast<const T*>(sources[rank]) + i;
    s0 = hn::Add(s0, load_terms(d, from));
    s1 = hn::Add(s1, load_terms(d, from + n));
    s2 = hn::Add(s2, load_terms(d, from + 2 * n));
    s3 = hn::Add(s3, load_terms(d, from + 3 * n));
  }
  result += i;
  store_sums<past_caches>(d, s0, result);
  store_sums<past_caches>(d, s1, result + n);
  store_sums<past_caches>(d, s2, result + 2 * n);
  store_sums<past_caches>(d, s3, result + 3 * n);
}

template <typename T>
HWY_INLINE void sum_single(SumSources sources, T* result, std::int64_t i) {
  const hn::CappedTag<hn::TFromD<SumTag<T>>, 1> d;
  auto sum = load_terms(d, reinterpret_cast<const T*>(sources.front()) + i);
  for (std::size_t rank = 1; rank < sources.size(); ++rank)
    sum = hn::Add(sum, load_terms(d, reinterpret_cast<const T*>(sources[rank]) + i));
  store_sums<false>(d, sum, result + i);
}

// Elements until `result` is aligned to a vector.
template <typename T>
HWY_INLINE std::int64_t head_of(const T* result, std::int64_t count) {
  const std::size_t bytes = hn::Lanes(hn::ScalableTag<std::uint8_t>());
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(result) % bytes / sizeof(T);
  return std::min(count, static_cast<std::int64_t>(head));
}

template <bool past_caches, typename T>
HWY_INLINE void sum_all(SumSources sources, T* result, std::int64_t count) {
  const auto step = static_cast<std::int64_t>(4 * hn::Lanes(SumTag<T>()));
  const std::int64_t head = past_caches ? head_of(result, count) : 0;
  std::int64_t i = 0;
  for (; i < head; ++i) sum_single(sources, result, i);
  for (; i + step <= count; i += step) sum_vectors<past_caches>(sources, result, i);
  for (; i < count; ++i) sum_single(sources, result, i);
  if (past_caches) hwy::FlushStream();
}

// A result that is a source is in the caches already.
template <typename T>
HWY_INLINE void sum_elements(SumSources sources, T* result, std::int64_t count) {
  const bool is_source =
      std::ranges::find(sources, reinterpret_cast<const std::byte*>(result)) != sources.end();
  if (is_source || static_cast<std::size_t>(count) * sizeof(T) < bulk_bytes)
    return sum_all<false>(sources, result, count);
  sum_all<true>(sources, result, count);
}

void sum_bf16(SumSources sources, std::byte* result, std::int64_t count) {
  sum_elements(sources, reinterpret_cast<bfloat16*>(result), count);
}
void sum_f32(SumSources sources, std::byte* result, std::int64_t count) {
  sum_elements(sources, reinterpret_cast<float*>(result), count);
}
void sum_f64(SumSources sources, std::byte* result, std::int64_t count) {
  sum_elements(sources, reinterpret_cast<double*>(result), count);
}

}  // namespace HWY_NAMESPACE
}  // namespace strata
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata {
namespace {

HWY_EXPORT(sum_bf16);
HWY_EXPORT(sum_f32);
HWY_EXPORT(sum_f64);

}  // namespace

void sum_ranks(std::span<const std::byte* const> sources, DType dtype, std::int64_t count,
               std::byte* result) {
  ensure(dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16);
  if (sources.size() == 1)
    return bulk_copy(result, sources.front(), static_cast<std::size_t>(count * dtype_bytes(dtype)));
  const IeeeEnvironment environment;
  if (dtype == DType::bf16) return HWY_DYNAMIC_DISPATCH(sum_bf16)(sources, result, count);
  if (dtype == DType::f64) return HWY_DYNAMIC_DISPATCH(sum_f64)(sources, result, count);
  HWY_DYNAMIC_DISPATCH(sum_f32)(sources, result, count);
}

}  // namespace strata
#endif
