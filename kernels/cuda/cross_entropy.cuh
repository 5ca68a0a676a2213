#pragma once
// Softmax cross-entropy of a chunk of tokens: a block a token, which reads its logits twice, once
// for their largest and the sum of exponentials, once for the gradient. Gradients may be written
// over f32 logits.

#include "kernels/common/cross_entropy_checks.hpp"
#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/reductions.cuh"
#include "strata/kernels/kernels.hpp"

namespace strata::cuda {

inline constexpr int softmax_warps = 16, softmax_threads = softmax_warps * warp_threads;

template <class T>
struct CrossEntropy {
  Global<float> logits_cv;
  Global<const std::int32_t> labels_c;
  Global<float> losses_c;
  Global<T> dlogits_cv;  // may be empty, or the logits
  double scale;
  std::int64_t v;
  bool aligned;
};

// Sum of exp(x - largest) over some logits. A NaN makes the sum one.
struct Exponentials {
  float largest;
  float sum;
};

STRATA_DEVICE float minus_infinity() { return -std::bit_cast<float>(0x7f800000u); }

// The exponentials relative to a larger largest.
STRATA_DEVICE float rescaled(const Exponentials& part, float largest) {
  return part.largest == largest ? part.sum : part.sum * std::exp(part.largest - largest);
}

STRATA_DEVICE void add_logits(Exponentials& part, const Floats& x, int count) {
  float largest = part.largest;
  STRATA_UNROLL
  for (int i = 0; i < group_elements; ++i)
    if (i < count && x[i] > largest) largest = x[i];
  part.sum = rescaled(part, largest);
  part.largest = largest;
  STRATA_UNROLL
  for (int i = 0; i < group_elements; ++i)
    if (i < count && x[i] != minus_infinity()) part.sum += std::exp(x[i] - largest);
}

template <class T>
STRATA_DEVICE Span row_span(const CrossEntropy<T>& args, std::int64_t row, std::int64_t j) {
  Span span = span_at(j, args.v, args.aligned);
  span.first += row * args.v;
  return span;
}

template <class T>
STRATA_DEVICE Exponentials thread_exponentials(const CrossEntropy<T>& args, std::int64_t row) {
  Exponentials part{minus_infinity(), 0};
  constexpr int stride = softmax_threads * group_elements;
  for (std::int64_t j = thread_index() * group_elements; j < args.v; j += stride) {
    const Span span = row_span(args, row, j);
    add_logits(part, load_floats(args.logits_cv, span), span.count);
  }
  return part;
}

// scale (softmax - [j is the label]), the label's own element in double.
template <class T>
STRATA_DEVICE void write_gradient(const CrossEntropy<T>& args, std::int64_t row, std::int64_t label,
                                  float largest, double total) {
  const auto factor = static_cast<float>(args.scale / total);
  constexpr int stride = softmax_threads * group_elements;
  for (std::int64_t j = thread_index() * group_elements; j < args.v; j += stride) {
    const Span span = row_span(args, row, j);
    Floats x = load_floats(args.logits_cv, span);
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) {
      const float e = std::exp(x[i] - largest);
      const double probability = static_cast<double>(e) / total;
      x[i] = j + i == label ? static_cast<float>(args.scale * (probability - 1)) : e * factor;
    }
    store_floats(args.dlogits_cv, span, x);
  }
}

template <class T>
STRATA_DEVICE void write_zeros(const CrossEntropy<T>& args, std::int64_t row) {
  constexpr int stride = softmax_threads * group_elements;
  for (std::int64_t j = thread_index() * group_elements; j < args.v; j += stride)
    store_floats(args.dlogits_cv, row_span(args, row, j), Floats{});
}

template <class T>
STRATA_KERNEL(softmax_threads)
cross_entropy_kernel(CrossEntropy<T> args) {
  const std::int64_t row = block_x(), label = args.labels_c.load(row);
  if (label < 0) {
    if (thread_index() == 0) args.losses_c.store(row, 0);
    if (!args.dlogits_cv.empty()) write_zeros(args, row);
    return;
  }
  const float at_label = args.logits_cv.load(row * args.v + label);
  const Exponentials part = thread_exponentials(args, row);
  const float largest = block_max<softmax_warps>(part.largest, Shared<float>(0, softmax_warps));
  const double total = block_sum<softmax_warps>(static_cast<double>(rescaled(part, largest)),
                                                Shared<double>(softmax_warps * 8, softmax_warps));
  if (!args.dlogits_cv.empty()) write_gradient(args, row, label, largest, total);
  if (thread_index() != 0) return;
  const double above = static_cast<double>(largest) - static_cast<double>(at_label);
  args.losses_c.store(row, static_cast<float>(args.scale * (std::log(total) + above)));
}

// --- Host

inline LaunchShape cross_entropy_shape(std::int64_t c) {
  return {c, 1, softmax_threads, 2 * softmax_warps * std::int64_t{sizeof(double)}};
}

template <class Launcher>
void launch_cross_entropy(Launcher& launcher, const CrossEntropyArgs& args) {
  check_cross_entropy(args);
  const std::int64_t c = args.logits_cv.dim(0), v = args.logits_cv.dim(1);
  const bool aligned = is_aligned(args.logits_cv, v) && is_aligned(args.dlogits_cv);
  const DType storage = args.dlogits_cv.empty() ? DType::f32 : args.dlogits_cv.dtype;
  with_float_type(storage, [&](auto element) {
    using T = decltype(element);
    const auto dlogits = args.dlogits_cv.empty() ? Global<T>() : Global<T>(args.dlogits_cv);
    const CrossEntropy<T> row{Global<float>(args.logits_cv),
                              Global<const std::int32_t>(args.labels_c),
                              Global<float>(args.losses_c),
                              dlogits,
                              args.scale,
                              v,
                              aligned};
    launcher.launch("cross_entropy", cross_entropy_kernel<T>, cross_entropy_shape(c), row);
  });
}

}  // namespace strata::cuda
