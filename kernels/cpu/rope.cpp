#include "kernels/cpu/rope.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/parallel.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rope.cpp"
// foreach_target.h must come first.
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "kernels/cpu/elements-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

constexpr std::size_t chunk_pairs = 64;  // pairs whose sines and cosines are kept at a time

struct Turns {
  std::array<float, chunk_pairs> cosines, sines;
};

// Highway's sine and cosine are good to 3 ulp up to this angle.
constexpr float max_vector_angle = 39000.0f;

// The angle is rounded to fp32 before its sine is taken, as the contract says.
HWY_INLINE void turn_vectors(float position, std::span<const float> frequencies, Turns& turns) {
  const auto pairs = static_cast<std::int64_t>(frequencies.size());
  for_each_vector(0, pairs, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto angle = hn::Mul(hn::Set(d, position), load(d, frequencies.data() + i));
    store(d, hn::Cos(d, angle), turns.cosines.data() + i);
    store(d, hn::Sin(d, angle), turns.sines.data() + i);
  });
}

HWY_INLINE void turn_far(float position, std::span<const float> frequencies, Turns& turns) {
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    turns.cosines[i] = std::cos(position * frequencies[i]);
    turns.sines[i] = std::sin(position * frequencies[i]);
  }
}

HWY_INLINE void make_turns(float position, std::span<const float> frequencies, Turns& turns) {
  const float largest = *std::max_element(frequencies.begin(), frequencies.end());
  if (position * largest < max_vector_angle) {
    turn_vectors(position, frequencies, turns);
  } else {
    turn_far(position, frequencies, turns);
  }
}

// Turns pairs (first[i], second[i]).
template <class T>
HWY_INLINE void rotate(T* first, T* second, std::int64_t pairs, const Turns& turns,
                       float direction) {
  for_each_vector(0, pairs, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto cosine = load(d, turns.cosines.data() + i);
    const auto sine = hn::Mul(load(d, turns.sines.data() + i), hn::Set(d, direction));
    const auto x = load(d, first + i);
    const auto y = load(d, second + i);
    store(d, hn::Sub(hn::Mul(x, cosine), hn::Mul(y, sine)), first + i);
    store(d, hn::Add(hn::Mul(y, cosine), hn::Mul(x, sine)), second + i);
  });
}

template <class T>
HWY_INLINE void rotate_token(T* x_hd, std::int64_t heads, float position,
                             std::span<const float> frequencies, float direction) {
  const std::size_t half = frequencies.size();
  Turns turns;
  for (std::size_t start = 0; start < half; start += chunk_pairs) {
    const std::size_t pairs = std::min(chunk_pairs, half - start);
    make_turns(position, frequencies.subspan(start, pairs), turns);
    for (std::int64_t head = 0; head < heads; ++head) {
      T* first =
          x_hd + head * static_cast<std::int64_t>(2 * half) + static_cast<std::int64_t>(start);
      rotate(first, first + half, static_cast<std::int64_t>(pairs), turns, direction);
    }
  }
}

void rope_tokens(TensorView x_thd, TensorView document_start_t, std::span<const float> frequencies,
                 float direction, std::int64_t begin, std::int64_t end) {
  with_element(x_thd.dtype, [&](auto* element) HWY_ATTR {
    using T = std::remove_pointer_t<decltype(element)>;
    for (std::int64_t token = begin; token < end; ++token) {
      const auto position =
          static_cast<float>(token - document_start_t.as<const std::int32_t>()[token]);
      rotate_token(x_thd.as<T>() + token * x_thd.dim(1) * x_thd.dim(2), x_thd.dim(1), position,
                   frequencies, direction);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::cpu {
namespace {

HWY_EXPORT(rope_tokens);

constexpr std::int64_t chunk_tokens = 32;

}  // namespace

void rope(Parallel& parallel, TensorView x_thd, TensorView document_start_t,
          std::span<const float> inverse_frequencies, Rotation rotation) {
  ensure(x_thd.shape.rank == 3 && document_start_t.count() == x_thd.dim(0));
  ensure(document_start_t.dtype == DType::i32);
  ensure(static_cast<std::int64_t>(inverse_frequencies.size()) * 2 == x_thd.dim(2));
  const float direction = rotation == Rotation::forward ? 1.0f : -1.0f;
  parallel.for_chunks(x_thd.dim(0), chunk_tokens, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(rope_tokens)
    (x_thd, document_start_t, inverse_frequencies, direction, begin, end);
  });
}

}  // namespace strata::cpu
#endif
