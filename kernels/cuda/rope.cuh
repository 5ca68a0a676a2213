#pragma once
// Rotate-half RoPE in place: a block a token, whose angles it computes once for all heads.

#include "kernels/common/activation_formulas.hpp"
#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/launch_shape.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata::cuda {

inline constexpr int half_head_max = 256, rope_threads = 128;

struct InverseFrequencies {
  float values[half_head_max];
};

struct RopeShape {
  std::int64_t num_tokens;
  int num_heads, half;
  bool aligned;
};

// cosines, then sines; the inverse rotation has its sines turned round.
STRATA_DEVICE void rope_angles(float position, const InverseFrequencies& frequencies, int half,
                               Rotation rotation, const Shared<float>& angles) {
  for (int j = thread_index(); j < half; j += block_threads()) {
    const float angle = position * frequencies.values[j];
    const float sine = std::sin(angle);
    angles.store(j, std::cos(angle));
    angles.store(half + j, rotation == Rotation::forward ? sine : -sine);
  }
}

template <class T>
STRATA_DEVICE void rope_span(const Global<T>& x, const Span& first, const Span& second, int j,
                             int half, const Shared<float>& angles) {
  Floats a = load_floats(x, first), b = load_floats(x, second);
  STRATA_UNROLL
  for (int i = 0; i < group_elements; ++i) {
    if (i >= first.count) break;
    const auto pair = turned(a[i], b[i], angles.load(j + i), angles.load(half + j + i));
    a[i] = pair.first;
    b[i] = pair.second;
  }
  store_floats(x, first, a);
  store_floats(x, second, b);
}

template <class T>
STRATA_KERNEL(rope_threads)
rope_kernel(Global<T> x_thd, Global<const std::int32_t> starts,
            STRATA_PARAMETER InverseFrequencies frequencies, RopeShape shape, Rotation rotation) {
  const Shared<float> angles(0, 2 * shape.half);
  const std::int64_t token = block_x();
  rope_angles(static_cast<float>(token - starts.load(token)), frequencies, shape.half, rotation,
              angles);
  sync_threads();
  const int spans = (shape.half + group_elements - 1) / group_elements;
  for (int item = thread_index(); item < shape.num_heads * spans; item += block_threads()) {
    const int j = item % spans * group_elements;
    const std::int64_t head = (token * shape.num_heads + item / spans) * 2 * shape.half;
    Span first = span_at(j, shape.half, shape.aligned), second = first;
    first.first += head;
    second.first += head + shape.half;
    rope_span(x_thd, first, second, j, shape.half, angles);
  }
}

// --- Host

template <class Launcher>
void launch_rope(Launcher& launcher, const TensorView& x_thd, const TensorView& document_start_t,
                 std::span<const float> inverse_frequencies, Rotation rotation) {
  const std::int64_t half = x_thd.dim(2) / 2;
  ensure(static_cast<std::int64_t>(inverse_frequencies.size()) == half && half <= half_head_max);
  ensure(document_start_t.dtype == DType::i32 && document_start_t.count() == x_thd.dim(0));
  InverseFrequencies frequencies{};
  std::ranges::copy(inverse_frequencies, frequencies.values);
  const RopeShape shape{x_thd.dim(0), static_cast<int>(x_thd.dim(1)), static_cast<int>(half),
                        is_aligned(x_thd, half)};
  const LaunchShape launch{x_thd.dim(0), 1, rope_threads, 2 * half * std::int64_t{sizeof(float)}};
  with_float_type(x_thd.dtype, [&](auto element) {
    using T = decltype(element);
    launcher.launch("rope", rope_kernel<T>, launch, Global<T>(x_thd),
                    Global<const std::int32_t>(document_start_t), frequencies, shape, rotation);
  });
}

}  // namespace strata::cuda
