// What an optimizer pass keeps, as vectors of float: masters and moments in each of their layouts.
// Included once per SIMD target.

#if defined(STRATA_KERNELS_CPU_UPDATE_STATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_UPDATE_STATE_INL_H_
#undef STRATA_KERNELS_CPU_UPDATE_STATE_INL_H_
#else
#define STRATA_KERNELS_CPU_UPDATE_STATE_INL_H_
#endif

#include "hwy/cache_control.h"
#include "kernels/common/update_random.hpp"
#include "kernels/cpu/elements-inl.h"
#include "strata/core/block_q8.hpp"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

// random_bits() of the elements from `index` of a chunk on.
template <class D32>
HWY_INLINE hn::Vec<D32> random_vector(D32 d, std::uint32_t chunk_key, std::uint32_t index) {
  const auto strides = hn::Mul(hn::Iota(d, 0), hn::Set(d, random_stride));
  auto x = hn::Add(strides, hn::Set(d, chunk_key + index * random_stride));
  x = hn::Xor(x, hn::ShiftRight<16>(x));
  return hn::Mul(x, hn::Set(d, random_factor));
}

// Asks for the cache lines that two vectors of elements take, as far ahead as measured best.
template <class T>
HWY_INLINE void prefetch_ahead(const T* from) {
  constexpr std::size_t ahead_bytes = 2048, line_bytes = 64;
  constexpr std::size_t pair_bytes = 2 * hn::MaxLanes(FloatTag()) * sizeof(T);
  const auto* at = reinterpret_cast<const std::byte*>(from) + ahead_bytes;
  for (std::size_t line = 0; line < pair_bytes; line += line_bytes) hwy::Prefetch(at + line);
}

// --- Masters

// The low halves of the 32-bit elements of two vectors, in order. Combine is found by its
// arguments: Highway's scalar target, which never comes here, has none.
template <class D, class V32>
HWY_INLINE auto low_halves(D, V32 first, V32 second) {
  const hn::Rebind<std::uint16_t, D> half;
  const hn::Repartition<std::uint16_t, D> whole;
  return Combine(whole, hn::TruncateTo(half, second), hn::TruncateTo(half, first));
}

// An fp32 master; the working weight, where one is wanted, is written from it and never read.
struct WholeMaster {
  float* master;
  float* weight_f32;      // at most one of the two is not null
  bfloat16* weight_bf16;  // streamed: nobody reads it before the device does

  explicit WholeMaster(const UpdateArgs& args)
      : master(args.master.as<float>()),
        weight_f32(args.weight.dtype == DType::f32 ? args.weight.as<float>() : nullptr),
        weight_bf16(args.weight.dtype == DType::bf16 ? args.weight.as<bfloat16>() : nullptr) {}

  HWY_INLINE void prefetch(std::int64_t i) const { prefetch_ahead(master + i); }
  template <class D>
  HWY_INLINE hn::Vec<D> read(D d, std::int64_t i) const {
    return load(d, master + i);
  }
  template <class D>
  HWY_INLINE void write(D d, hn::Vec<D> p, std::int64_t i) const {
    hn::StoreU(p, d, master + i);
    if (weight_f32 != nullptr) store_weight(d, p, weight_f32 + i);
    if (weight_bf16 != nullptr) store_weight(d, p, weight_bf16 + i);
  }
  // Two vectors from i on, which must be streamable().
  template <class D>
  HWY_INLINE void write(D d, hn::Vec<D> p, hn::Vec<D> next, std::int64_t i) const {
    const auto n = static_cast<std::int64_t>(hn::Lanes(d));
    if constexpr (hn::MaxLanes(D()) == 1) {
      write(d, p, i);
      write(d, next, i + n);
    } else {
      hn::StoreU(p, d, master + i);
      hn::StoreU(next, d, master + i + n);
      if (weight_f32 != nullptr) {
        hn::StoreU(p, d, weight_f32 + i);
        hn::StoreU(next, d, weight_f32 + i + n);
      }
      if (weight_bf16 != nullptr) stream_weights(d, p, next, weight_bf16 + i);
    }
  }
  // The first element from i on where two vectors may be streamed.
  template <class D>
  HWY_INLINE std::int64_t streamable(D d, std::int64_t i) const {
    if (weight_bf16 == nullptr) return i;
    const std::size_t bytes = hn::Lanes(d) * sizeof(float);
    const std::size_t past = reinterpret_cast<std::uintptr_t>(weight_bf16 + i) % bytes;
    return past == 0 ? i : i + static_cast<std::int64_t>((bytes - past) / sizeof(bfloat16));
  }

 private:
  template <class D>
  static HWY_INLINE void stream_weights(D d, hn::Vec<D> p, hn::Vec<D> next, bfloat16* to) {
    const hn::Repartition<std::uint16_t, D> d16;
    hn::Stream(low_halves(d, rounded(d, p), rounded(d, next)), d16,
               reinterpret_cast<std::uint16_t*>(to));
  }
  template <class D>
  static HWY_INLINE auto rounded(D, hn::Vec<D> p) {
    const hn::RebindToUnsigned<D> d32;
    return hn::ShiftRight<16>(hn::Add(hn::BitCast(d32, p), hn::Set(d32, 0x8000)));
  }
};

// The working weight and the 16 bits it lacks.
struct SplitMaster {
  std::uint16_t* low;
  std::uint16_t* weight;

  explicit SplitMaster(const UpdateArgs& args)
      : low(args.master.as<std::uint16_t>()), weight(args.weight.as<std::uint16_t>()) {}

  HWY_INLINE void prefetch(std::int64_t i) const {
    prefetch_ahead(low + i);
    prefetch_ahead(weight + i);
  }
  template <class D>
  HWY_INLINE hn::Vec<D> read(D d, std::int64_t i) const {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::RebindToUnsigned<D> d32;
    const auto lows = hn::PromoteTo(d32, hn::LoadU(d16, low + i));
    const auto high =
        hn::Sub(hn::PromoteTo(d32, hn::LoadU(d16, weight + i)), hn::ShiftRight<15>(lows));
    return hn::BitCast(d, hn::Or(hn::ShiftLeft<16>(high), lows));
  }
  template <class D>
  HWY_INLINE void write(D, hn::Vec<D> p, std::int64_t i) const {
    const hn::Rebind<std::uint16_t, D> d16;
    const hn::RebindToUnsigned<D> d32;
    const auto bits = hn::BitCast(d32, p);
    const auto high = hn::ShiftRight<16>(hn::Add(bits, hn::Set(d32, 0x8000)));
    hn::StoreU(hn::TruncateTo(d16, bits), d16, low + i);
    hn::StoreU(hn::TruncateTo(d16, high), d16, weight + i);
  }
  template <class D>
  HWY_INLINE void write(D d, hn::Vec<D> p, hn::Vec<D> next, std::int64_t i) const {
    write(d, p, i);
    write(d, next, i + static_cast<std::int64_t>(hn::Lanes(d)));
  }
  template <class D>
  HWY_INLINE std::int64_t streamable(D, std::int64_t i) const {
    return i;
  }
};

// --- Moments stored an element at a time

// Stores as to_bfloat16_stochastic() does.
template <class D, class V32>
HWY_INLINE void store_stochastic(D d, hn::Vec<D> value, V32 random, bfloat16* to) {
  const hn::RebindToUnsigned<D> d32;
  const auto rounded = hn::Add(hn::BitCast(d32, value), random);
  const auto nan = hn::RebindMask(d32, hn::IsNaN(value));
  store_high_half(d, hn::IfThenElse(nan, hn::Set(d32, 0x7fc00000), rounded), to);
}

template <class Rule, class D>
HWY_INLINE void store_moments(D d, hn::Vec<D> m, hn::Vec<D> v, std::uint32_t, std::uint32_t,
                              float* to_m, float* to_v) {
  store(d, m, to_m);
  if constexpr (Rule::two_moments) store(d, v, to_v);
}

template <class Rule, class D>
HWY_INLINE void store_moments(D d, hn::Vec<D> m, hn::Vec<D> v, std::uint32_t chunk_key,
                              std::uint32_t index, bfloat16* to_m, bfloat16* to_v) {
  const hn::RebindToUnsigned<D> d32;
  const auto random = random_vector(d32, chunk_key, index);
  store_stochastic(d, m, hn::ShiftRight<16>(random), to_m);
  if constexpr (Rule::two_moments)
    store_stochastic(d, v, hn::And(random, hn::Set(d32, 0xffff)), to_v);
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#endif
