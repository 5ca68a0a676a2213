#pragma once
// How an optimizer pass reads and writes masters and moments in each of their layouts, a span of
// eight elements a thread. Rounding and codes are those of core/dtype.hpp and core/block_q8.hpp.

#include "kernels/common/update_checks.hpp"
#include "kernels/common/update_random.hpp"
#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/reductions.cuh"
#include "strata/core/block_q8.hpp"

namespace strata::cuda {

// --- Masters

template <class W>
struct WholeMaster {
  Global<float> master;
  Global<W> weight;  // may be empty

  explicit WholeMaster(const UpdateArgs& args) : master(args.master), weight(args.weight) {}

  STRATA_DEVICE Floats read(const Span& span) const { return load_floats(master, span); }
  STRATA_DEVICE void write(const Span& span, Floats p) const {
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) p[i] = plain_nan(p[i]);
    store_floats(master, span, p);
    if (weight.empty()) return;
    Group<W, group_elements> rounded_p{};
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) rounded_p[i] = working_weight<W>(p[i]);
    store_span(weight, span, rounded_p);
  }
};

struct SplitMaster {
  Global<std::uint16_t> low_bits;
  Global<bfloat16> weight;

  explicit SplitMaster(const UpdateArgs& args) : low_bits(args.master), weight(args.weight) {}

  STRATA_DEVICE Floats read(const Span& span) const {
    const auto high = load_span(weight, span);
    const auto low = load_span(low_bits, span);
    Floats p{};
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) p[i] = join_master(high[i], low[i]);
    return p;
  }
  STRATA_DEVICE void write(const Span& span, const Floats& p) const {
    Group<bfloat16, group_elements> high{};
    Group<std::uint16_t, group_elements> low{};
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) {
      const float master = plain_nan(p[i]);
      high[i] = weight_to_bfloat16(master);
      low[i] = master_low_bits(master);
    }
    store_span(weight, span, high);
    store_span(low_bits, span, low);
  }
};

// --- Random bits

using RandomBits = Group<std::uint32_t, group_elements>;

// Of eight elements from one of the shard on, which lie in one chunk or in two.
STRATA_DEVICE RandomBits random_bits_of(const UpdateRandom& random, std::int64_t element) {
  const std::int64_t chunk = element / random_chunk_elements;
  const auto first = static_cast<std::uint32_t>(element % random_chunk_elements);
  const std::uint32_t key = random.chunk_key(chunk);
  std::uint32_t next_key = key;
  if (first + group_elements > random_chunk_elements) next_key = random.chunk_key(chunk + 1);
  RandomBits bits{};
  STRATA_UNROLL
  for (int i = 0; i < group_elements; ++i) {
    const std::uint32_t at = first + static_cast<std::uint32_t>(i);
    const bool in_next = at >= random_chunk_elements;
    bits[i] = random_bits(in_next ? next_key : key, at % random_chunk_elements);
  }
  return bits;
}

// --- Moments

enum class MomentNumber : std::uint8_t { first, second };

template <class T>
class PlainMoment {
 public:
  PlainMoment(const TensorView& view, MomentNumber number) : values_(view), number_(number) {}

  static constexpr bool is_random = std::is_same_v<T, bfloat16>;

  STRATA_DEVICE Floats read(const Span& span) const { return load_floats(values_, span); }
  STRATA_DEVICE void write(const Span& span, const Floats& floats, const RandomBits& bits) const {
    Group<T, group_elements> group{};
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) {
      if constexpr (is_random) {
        group[i] = to_bfloat16_stochastic(floats[i], number_ == MomentNumber::first
                                                         ? random16_moment1(bits[i])
                                                         : random16_moment2(bits[i]));
      } else {
        group[i] = floats[i];
      }
    }
    store_span(values_, span, group);
  }

 private:
  Global<T> values_;
  MomentNumber number_;
};

STRATA_DEVICE std::uint32_t magnitude_bits(float value) {
  return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu;
}

// A warp holds a block, eight elements a lane.
class Q8Moment {
 public:
  Q8Moment(const TensorView& view, MomentNumber number)
      : codes_(view.as<std::uint8_t>(), view.empty() ? 0 : view.count()),
        scales_(view.empty() ? nullptr
                             : reinterpret_cast<float*>(view.as<std::byte>() +
                                                        q8_scales_begin(view.count())),
                view.empty() ? 0 : q8_num_blocks(view.count())),
        number_(number) {}

  static constexpr bool is_random = true;

  STRATA_DEVICE Floats read(const Span& span) const {
    Floats floats{};
    if (span.count == 0) return floats;
    const auto codes = load_span(codes_, span);
    const float scale = scales_.load(span.first / q8_block_elements);
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) {
      floats[i] = number_ == MomentNumber::first ? q8_decode_signed(codes[i], scale)
                                                 : q8_decode_unsigned(codes[i], scale);
    }
    return floats;
  }
  STRATA_DEVICE void write(const Span& span, const Floats& floats, const RandomBits& bits) const {
    const float scale = new_scale(span, floats);
    sync_warp();  // Every lane has read the old scale.
    if (lane_index() == 0) scales_.store(span.first / q8_block_elements, scale);
    const float inverse = q8_inverse_scale(scale);
    Group<std::uint8_t, group_elements> codes{};
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) {
      codes[i] = number_ == MomentNumber::first
                     ? q8_encode_signed(floats[i], inverse, random20_moment1(bits[i]))
                     : q8_encode_unsigned(floats[i], inverse, random20_moment2(bits[i]));
    }
    store_span(codes_, span, codes);
  }

 private:
  STRATA_DEVICE float new_scale(const Span& span, const Floats& floats) const {
    std::uint32_t largest = 0;
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) {
      const std::uint32_t bits = i < span.count ? magnitude_bits(floats[i]) : 0;
      largest = bits > largest ? bits : largest;
    }
    return q8_scale(warp_max(largest),
                    number_ == MomentNumber::first ? q8_signed_octaves : q8_unsigned_octaves);
  }

  Global<std::uint8_t> codes_;
  Global<float> scales_;
  MomentNumber number_;
};

}  // namespace strata::cuda
