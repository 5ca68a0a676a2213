#pragma once
// Elements in f32 or bf16 as groups of eight floats, which is what a thread of an element-wise
// kernel works on: 16 bytes of bf16, 32 of f32.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/cuda/simt.hpp"

namespace strata::cuda {

inline constexpr int group_elements = 8;
using Floats = Group<float, group_elements>;

// Up to eight consecutive elements.
struct Span {
  std::int64_t first = 0;
  int count = 0;       // 0 to 8
  bool whole = false;  // eight of them, on a boundary of 16 bytes
};

constexpr Span span_at(std::int64_t first, std::int64_t end, bool aligned) {
  const std::int64_t left = end - first;
  const int count = left >= group_elements ? group_elements : left < 0 ? 0 : static_cast<int>(left);
  return {first, count, aligned && count == group_elements};
}

STRATA_DEVICE float widen(float value) { return value; }
STRATA_DEVICE float widen(bfloat16 value) { return to_float(value); }

// Rounds to nearest even.
template <class T>
STRATA_DEVICE T rounded(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return narrow(value);
  }
}

// A GPU's own NaN has every bit set, which a working weight's rounding would carry over to -0.
STRATA_DEVICE float plain_nan(float value) {
  return value == value ? value : std::bit_cast<float>(std::uint32_t{0x7fc00000});
}

// As working weights are rounded: half up, so that a split master can undo it.
template <class W>
STRATA_DEVICE W working_weight(float master) {
  if constexpr (std::is_same_v<W, float>) {
    return master;
  } else {
    return weight_to_bfloat16(plain_nan(master));
  }
}

template <class T>
STRATA_DEVICE Group<std::remove_const_t<T>, group_elements> load_span(const Global<T>& from,
                                                                      const Span& span) {
  if (span.whole) return from.template load_group<group_elements>(span.first);
  Group<std::remove_const_t<T>, group_elements> group{};
  STRATA_UNROLL
  for (int i = 0; i < group_elements; ++i)
    if (i < span.count) group[i] = from.load(span.first + i);
  return group;
}

template <class T>
STRATA_DEVICE void store_span(const Global<T>& to, const Span& span,
                              const Group<T, group_elements>& group) {
  if (span.whole) return to.template store_group<group_elements>(span.first, group);
  STRATA_UNROLL
  for (int i = 0; i < group_elements; ++i)
    if (i < span.count) to.store(span.first + i, group[i]);
}

// Missing elements are zero.
template <class T>
STRATA_DEVICE Floats load_floats(const Global<T>& from, const Span& span) {
  const auto group = load_span(from, span);
  Floats floats{};
  STRATA_UNROLL
  for (int i = 0; i < group_elements; ++i) floats[i] = widen(group[i]);
  return floats;
}

template <class T>
STRATA_DEVICE void store_floats(const Global<T>& to, const Span& span, const Floats& floats) {
  Group<T, group_elements> group{};
  STRATA_UNROLL
  for (int i = 0; i < group_elements; ++i) group[i] = rounded<T>(floats[i]);
  store_span(to, span, group);
}

// Whether groups of eight elements of a tensor start on 16 bytes, if its rows are of this length.
inline bool is_aligned(const TensorView& view, std::int64_t row_elements = group_elements) {
  return reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0 &&
         row_elements % group_elements == 0;
}

// Calls f with a value of the storage's type.
template <class F>
void with_float_type(DType dtype, F f) {
  ensure(dtype == DType::f32 || dtype == DType::bf16);
  if (dtype == DType::f32) return f(float{});
  f(bfloat16{});
}

}  // namespace strata::cuda
