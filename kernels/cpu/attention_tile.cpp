#include "kernels/cpu/attention_tile.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_tile.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

using Vector = hn::Vec<FloatTag>;

HWY_INLINE std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(FloatTag())); }

// e^x for x <= 88 (scores below their maximum, mostly) within 2 ulp, in half the instructions of
// Highway's Exp: 2^n by adding n to the exponent, 2^f by its Taylor series on |f| <= 1/2. Below -87
// the result is that of -87; NaN stays NaN.
HWY_INLINE Vector exponential(Vector x) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> d32;
  const auto log2_e = hn::Set(d, 1.44269504088896341f);
  const auto bounded = hn::Max(hn::Set(d, -87.0f), x);  // In this order x86 keeps a NaN.
  const auto n = hn::Round(hn::Mul(bounded, log2_e));
  const auto f = hn::MulSub(bounded, log2_e, n);
  auto power = hn::Set(d, 1.540353e-4f);
  for (float coefficient : {1.333355815e-3f, 9.618129108e-3f, 5.550410866e-2f, 2.402265070e-1f,
                            6.931471806e-1f, 1.0f}) {
    power = hn::MulAdd(power, f, hn::Set(d, coefficient));
  }
  const auto exponent = hn::ShiftLeft<23>(hn::ConvertTo(d32, n));
  return hn::BitCast(d, hn::Add(hn::BitCast(d32, power), exponent));
}

// Calls f(column, mask of visible lanes) for the vectors that hold a visible column.
template <class F>
HWY_INLINE void for_visible(const Visible& visible, F f) {
  const FloatTag d;
  const auto begin = hn::Set(d, static_cast<float>(visible.begin));
  const auto end = hn::Set(d, static_cast<float>(visible.end));
  for (std::int64_t c = visible.begin / lanes() * lanes(); c < visible.end; c += lanes()) {
    const auto column = hn::Iota(d, static_cast<float>(c));
    f(c, hn::And(hn::Ge(column, begin), hn::Lt(column, end)));
  }
}

// Zeroes the vectors of a row that for_visible() skips.
template <class T>
HWY_INLINE void clear_hidden(T* row, const Visible& visible, std::int64_t columns) {
  const FloatTag d;
  const std::int64_t begin = visible.begin / lanes() * lanes();
  const std::int64_t end =
      visible.begin < visible.end ? (visible.end + lanes() - 1) / lanes() * lanes() : begin;
  for (std::int64_t c = 0; c < begin; c += lanes()) store(d, hn::Zero(d), row + c);
  for (std::int64_t c = end; c < columns; c += lanes()) store(d, hn::Zero(d), row + c);
}

HWY_INLINE float largest(const float* row, const Visible& visible) {
  const FloatTag d;
  const auto lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  auto largest = lowest;
  for_visible(visible, [&](std::int64_t c, auto mask) HWY_ATTR {
    largest = hn::Max(largest, hn::IfThenElse(mask, hn::LoadU(d, row + c), lowest));
  });
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

template <class T>
HWY_INLINE float exponentials(const float* row, const Visible& visible, float scale, float maximum,
                              T* target) {
  const FloatTag d;
  auto sum = hn::Zero(d);
  for_visible(visible, [&](std::int64_t c, auto mask) HWY_ATTR {
    const auto exponent = hn::MulSub(hn::LoadU(d, row + c), hn::Set(d, scale), hn::Set(d, maximum));
    const auto p = hn::IfThenElseZero(mask, exponential(exponent));
    sum = hn::Add(sum, p);
    store(d, p, target + c);
  });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

HWY_INLINE void scale_row(float* row, std::int64_t count, float factor) {
  for_each_vector(0, count, [&](auto d, std::int64_t i) HWY_ATTR {
    store(d, hn::Mul(load(d, row + i), hn::Set(d, factor)), row + i);
  });
}

template <class T>
HWY_INLINE void softmax_row(const ScoreTile& tile, std::int64_t row, T* target,
                            const SoftmaxState& state) {
  const Visible& visible = tile.visible_r[row];
  clear_hidden(target, visible, tile.columns);
  if (visible.begin >= visible.end) return;
  const float* products = tile.products + row * tile_stride;
  const float before = state.maximum_r[row];
  const float maximum = std::max(before, tile.scale * largest(products, visible));
  const float correction = state.sum_r[row] > 0.0f ? std::exp(before - maximum) : 0.0f;
  const float sum = exponentials(products, visible, tile.scale, maximum, target);
  // Where nothing was summed, out_rd holds zeros or, before the first tile, nothing yet.
  if (state.sum_r[row] > 0.0f && correction < 1.0f) {
    scale_row(state.out_rd + row * state.head_dim, state.head_dim, correction);
  }
  state.maximum_r[row] = maximum;
  state.sum_r[row] = state.sum_r[row] * correction + sum;
}

void softmax_rows(const ScoreTile& tile, void* probabilities, const SoftmaxState& state) {
  with_element(tile.dtype, [&](auto* element) HWY_ATTR {
    using T = std::remove_pointer_t<decltype(element)>;
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      softmax_row(tile, row, static_cast<T*>(probabilities) + row * tile_stride, state);
    }
  });
}

void finish_rows(const SoftmaxState& state, std::int64_t rows, DType dtype, void* out,
                 std::int64_t out_stride, float* lse) {
  with_element(dtype, [&](auto* element) HWY_ATTR {
    using T = std::remove_pointer_t<decltype(element)>;
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* from = state.out_rd + row * state.head_dim;
      T* to = static_cast<T*>(out) + row * out_stride;
      const float sum = state.sum_r[row];
      for_each_vector(0, state.head_dim, [&](auto d, std::int64_t i) HWY_ATTR {
        store(d, hn::Div(load(d, from + i), hn::Set(d, sum)), to + i);
      });
      lse[row] = state.maximum_r[row] + std::log(sum);
    }
  });
}

// A number of each query, where queries are rows ...
struct OfRow {
  const float* values;
  HWY_INLINE Vector at(std::int64_t row, std::int64_t) const {
    return hn::Set(FloatTag(), values[row]);
  }
};
// ... or columns.
struct OfColumn {
  const float* values;
  HWY_INLINE Vector at(std::int64_t, std::int64_t column) const {
    return hn::LoadU(FloatTag(), values + column);
  }
};

// One row: p goes to `probabilities` unless that is null.
template <class Of, class T>
HWY_INLINE void gradient_row(const ScoreTile& tile, std::int64_t row, Of lse, Of delta,
                             const float* dp, T* probabilities, T* gradients) {
  const FloatTag d;
  const float* products = tile.products + row * tile_stride;
  const auto scale = hn::Set(d, tile.scale);
  for_visible(tile.visible_r[row], [&](std::int64_t c, auto mask) HWY_ATTR {
    const auto exponent = hn::MulSub(hn::LoadU(d, products + c), scale, lse.at(row, c));
    const auto p = hn::IfThenElseZero(mask, exponential(exponent));
    const auto slope = hn::Mul(hn::Sub(hn::LoadU(d, dp + c), delta.at(row, c)), scale);
    if (probabilities != nullptr) store(d, p, probabilities + c);
    store(d, hn::IfThenElseZero(mask, hn::Mul(p, slope)), gradients + c);
  });
  clear_hidden(gradients, tile.visible_r[row], tile.columns);
  if (probabilities != nullptr) clear_hidden(probabilities, tile.visible_r[row], tile.columns);
}

template <class Of>
HWY_INLINE void gradient_tile(const ScoreTile& tile, const ScoreGradient& gradient) {
  with_element(tile.dtype, [&](auto* element) HWY_ATTR {
    using T = std::remove_pointer_t<decltype(element)>;
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      const std::int64_t offset = row * tile_stride;
      T* p = static_cast<T*>(gradient.probabilities);
      gradient_row(tile, row, Of{gradient.lse}, Of{gradient.delta}, gradient.dp + offset,
                   p == nullptr ? p : p + offset, static_cast<T*>(gradient.gradients) + offset);
    }
  });
}

void gradient_rows(const ScoreTile& tile, const ScoreGradient& gradient) {
  if (gradient.queries == Queries::rows) {
    gradient_tile<OfRow>(tile, gradient);
  } else {
    gradient_tile<OfColumn>(tile, gradient);
  }
}

template <class T>
HWY_INLINE float dot(const T* a, const T* b, std::int64_t count) {
  const FloatTag d;
  auto sum = hn::Zero(d);
  float tail = 0.0f;
  std::int64_t i = 0;
  for (; i + lanes() <= count; i += lanes()) sum = hn::MulAdd(load(d, a + i), load(d, b + i), sum);
  for (; i < count; ++i) tail += to_float(a[i]) * to_float(b[i]);
  return hn::GetLane(hn::SumOfLanes(d, sum)) + tail;
}

void delta_tokens(TensorView out_tqd, TensorView dout_tqd, std::int64_t begin, std::int64_t end,
                  float* delta_qt) {
  const std::int64_t heads = out_tqd.dim(1);
  const std::int64_t head_dim = out_tqd.dim(2);
  with_element(out_tqd.dtype, [&](auto* element) HWY_ATTR {
    using T = std::remove_pointer_t<decltype(element)>;
    for (std::int64_t row = begin * heads; row < end * heads; ++row) {
      const std::int64_t at = row * head_dim;
      delta_qt[row % heads * out_tqd.dim(0) + row / heads] =
          dot(out_tqd.as<const T>() + at, dout_tqd.as<const T>() + at, head_dim);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::cpu {
namespace {

HWY_EXPORT(softmax_rows);
HWY_EXPORT(finish_rows);
HWY_EXPORT(gradient_rows);
HWY_EXPORT(delta_tokens);

}  // namespace

void softmax_tile(const ScoreTile& tile, void* probabilities, const SoftmaxState& state) {
  HWY_DYNAMIC_DISPATCH(softmax_rows)(tile, probabilities, state);
}
void finish_softmax(const SoftmaxState& state, std::int64_t rows, DType dtype, void* out,
                    std::int64_t out_stride, float* lse) {
  HWY_DYNAMIC_DISPATCH(finish_rows)(state, rows, dtype, out, out_stride, lse);
}
void score_gradient_tile(const ScoreTile& tile, const ScoreGradient& gradient) {
  HWY_DYNAMIC_DISPATCH(gradient_rows)(tile, gradient);
}
void output_deltas(TensorView out_tqd, TensorView dout_tqd, std::int64_t begin, std::int64_t end,
                   float* delta_qt) {
  HWY_DYNAMIC_DISPATCH(delta_tokens)(out_tqd, dout_tqd, begin, end, delta_qt);
}

}  // namespace strata::cpu
#endif
