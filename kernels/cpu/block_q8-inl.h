// Blocks of 8-bit moments to and from float, as strata/core/block_q8.hpp defines them. Included
// once per SIMD target.

#if defined(STRATA_KERNELS_CPU_BLOCK_Q8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef STRATA_KERNELS_CPU_BLOCK_Q8_INL_H_
#undef STRATA_KERNELS_CPU_BLOCK_Q8_INL_H_
#else
#define STRATA_KERNELS_CPU_BLOCK_Q8_INL_H_
#endif

#include <algorithm>
#include <bit>

#include "kernels/cpu/update_state-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

// The moments differ in what they make of the sign, and in their range.
struct SignedMap {
  static constexpr int octaves = q8_signed_octaves;
  static constexpr std::uint32_t magnitude = 0x7fffffff;

  // `codes` widened, their signs extended.
  template <class D, class V32>
  static HWY_INLINE hn::Vec<D> decode(D d, V32 codes, hn::Vec<D> scale, hn::Vec<D> twice_scale) {
    const hn::RebindToUnsigned<D> d32;
    const auto bits = hn::And(hn::ShiftLeft<20>(codes), hn::Set(d32, 0x07f00000));
    const auto t = hn::BitCast(d, hn::Or(bits, hn::Set(d32, 0x40000000)));
    return hn::CopySignToAbs(hn::MulSub(t, scale, twice_scale), hn::BitCast(d, codes));
  }
  template <class D, class V32>
  static HWY_INLINE auto encode(D d, hn::Vec<D> value, hn::Vec<D> inverse, V32 random) {
    const hn::RebindToUnsigned<D> d32;
    const auto t = hn::BitCast(d32, hn::MulAdd(hn::Abs(value), inverse, hn::Set(d, 2.0f)));
    const auto code = hn::ShiftRight<20>(hn::Add(t, hn::ShiftRight<12>(random)));
    const auto sign = hn::ShiftRight<24>(hn::BitCast(d32, value));
    return hn::Or(code, hn::And(sign, hn::Set(d32, 0x80)));
  }
};

struct UnsignedMap {
  static constexpr int octaves = q8_unsigned_octaves;
  static constexpr std::uint32_t magnitude = 0xffffffff;  // all bits: a NaN may have a sign

  template <class D, class V32>
  static HWY_INLINE hn::Vec<D> decode(D d, V32 codes, hn::Vec<D> scale, hn::Vec<D> twice_scale) {
    const hn::RebindToUnsigned<D> d32;
    const auto bits = hn::And(hn::ShiftLeft<20>(codes), hn::Set(d32, 0x0ff00000));
    const auto t = hn::BitCast(d, hn::Or(bits, hn::Set(d32, 0x40000000)));
    return hn::MulSub(t, scale, twice_scale);
  }
  template <class D, class V32>
  static HWY_INLINE auto encode(D d, hn::Vec<D> value, hn::Vec<D> inverse, V32 random) {
    const hn::RebindToUnsigned<D> d32;
    const auto t = hn::BitCast(d32, hn::MulAdd(value, inverse, hn::Set(d, 2.0f)));
    const auto fraction = hn::And(random, hn::Set(d32, 0xfffff));
    const auto code = hn::Add(t, hn::Or(fraction, hn::Set(d32, 0xC0000000u)));  // less bits of 2.0f
    const auto positive = hn::Min(hn::BitCast(d32, value), hn::Set(d32, 1));
    return hn::Max(hn::ShiftRight<20>(code), positive);
  }
};

// A block's codes and scale.
struct Q8Block {
  std::uint8_t* codes;
  float* scale;

  Q8Block(const TensorView& moment, std::int64_t begin)
      : codes(moment.as<std::uint8_t>() + begin),
        scale(reinterpret_cast<float*>(moment.as<std::byte>() + q8_scales_begin(moment.count())) +
              begin / q8_block_elements) {}
};

// t * scale - 2 * scale and (t - 2) * scale round alike, fused or not: a scale is a power of two.
template <class Map, class D>
HWY_INLINE hn::Vec<D> decode_vector(D d, const Q8Block& block, float scale, std::int64_t i) {
  const hn::RebindToSigned<D> di32;
  const hn::RebindToUnsigned<D> du32;
  const hn::Rebind<std::int8_t, D> d8;
  const auto codes = hn::LoadU(d8, reinterpret_cast<const std::int8_t*>(block.codes + i));
  return Map::decode(d, hn::BitCast(du32, hn::PromoteTo(di32, codes)), hn::Set(d, scale),
                     hn::Set(d, 2 * scale));
}

template <class Map>
HWY_INLINE void decode_block(const Q8Block& block, std::int64_t count, float* HWY_RESTRICT to) {
  const float scale = *block.scale;
  for_each_vector(0, count, [&](auto d, std::int64_t i) HWY_ATTR {
    hn::StoreU(decode_vector<Map>(d, block, scale, i), d, to + i);
  });
}

// A vector's magnitudes join the largest seen; NaN's and infinity's bits are larger than those of
// any number.
template <class Map, class D>
HWY_INLINE void note_largest(D, hn::Vec<D> values, hn::Vec<hn::RebindToUnsigned<D>>& largest) {
  const hn::RebindToUnsigned<D> d32;
  largest = hn::Max(largest, hn::And(hn::BitCast(d32, values), hn::Set(d32, Map::magnitude)));
}

// The bits of the largest magnitude.
template <class Map>
HWY_INLINE std::uint32_t largest_bits(const float* values, std::int64_t count) {
  const FloatTag d;
  const hn::RebindToUnsigned<FloatTag> d32;
  auto largest = hn::Zero(d32);
  std::uint32_t rest = 0;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) note_largest<Map>(d, hn::LoadU(d, values + i), largest);
  for (; i < count; ++i)
    rest = std::max(rest, std::bit_cast<std::uint32_t>(values[i]) & Map::magnitude);
  return std::max(rest, hn::GetLane(hn::MaxOfLanes(d32, largest)));
}

// Writes the block's scale and returns its inverse.
template <class Map>
HWY_INLINE float choose_scale(std::uint32_t largest, const Q8Block& block) {
  *block.scale = q8_scale(largest, Map::octaves);
  return q8_inverse_scale(*block.scale);
}

// A block whose values are all zero, or not all finite, is all zero codes.
HWY_INLINE void clear_if_scaleless(float inverse, std::int64_t count, const Q8Block& block) {
  if (inverse == 0) std::fill_n(block.codes, count, std::uint8_t{0});
}

template <class Map, class D, class V32>
HWY_INLINE void store_codes(D d, const float* from, float inverse, V32 random, std::uint8_t* to) {
  const hn::Rebind<std::uint8_t, D> d8;
  const auto codes = Map::encode(d, hn::LoadU(d, from), hn::Set(d, inverse), random);
  hn::StoreU(hn::TruncateTo(d8, codes), d8, to);
}

// Both moments share an element's random bits. `index` of the block's first element within its
// chunk; `largest1` and `largest2` are the bits of the largest magnitudes.
template <class Rule>
HWY_INLINE void encode_blocks(const float* HWY_RESTRICT m, const float* HWY_RESTRICT v,
                              std::int64_t count, std::uint32_t largest1, std::uint32_t largest2,
                              std::uint32_t chunk_key, std::uint32_t index, const Q8Block& block1,
                              const Q8Block& block2) {
  const float inverse1 = choose_scale<SignedMap>(largest1, block1);
  float inverse2 = 0;
  if constexpr (Rule::two_moments) inverse2 = choose_scale<UnsignedMap>(largest2, block2);
  for_each_vector(0, count, [&](auto d, std::int64_t i) HWY_ATTR {
    const hn::RebindToUnsigned<decltype(d)> d32;
    const auto random = random_vector(d32, chunk_key, index + static_cast<std::uint32_t>(i));
    store_codes<SignedMap>(d, m + i, inverse1, random, block1.codes + i);
    if constexpr (Rule::two_moments)
      store_codes<UnsignedMap>(d, v + i, inverse2, random, block2.codes + i);
  });
  clear_if_scaleless(inverse1, count, block1);
  if constexpr (Rule::two_moments) clear_if_scaleless(inverse2, count, block2);
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#endif
