#pragma once
// SwiGLU, element by element. Outputs of backward may lie over its inputs: a thread reads all it
// needs before it writes.

#include "kernels/common/activation_formulas.hpp"
#include "kernels/cuda/elementwise.cuh"

namespace strata::cuda {

template <class T>
STRATA_KERNEL(256)
swiglu_forward_kernel(Global<const T> gate, Global<const T> up, Global<T> y, std::int64_t count,
                      bool aligned) {
  for_each_span(count, aligned, [&](const Span& span) {
    const Floats g = load_floats(gate, span), u = load_floats(up, span);
    Floats result{};
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) result[i] = swiglu(g[i], u[i]);
    store_floats(y, span, result);
  });
}

template <class T>
struct SwigluBackward {
  Global<const T> dy;
  Global<T> gate, up, dgate, dup;
};

template <class T>
STRATA_KERNEL(256)
swiglu_backward_kernel(SwigluBackward<T> args, std::int64_t count, bool aligned) {
  for_each_span(count, aligned, [&](const Span& span) {
    const Floats dy = load_floats(args.dy, span);
    Floats g = load_floats(args.gate, span), u = load_floats(args.up, span);
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) {
      const auto gradient = swiglu_gradient(dy[i], g[i], u[i]);
      g[i] = gradient.gate;
      u[i] = gradient.up;
    }
    store_floats(args.dgate, span, g);
    store_floats(args.dup, span, u);
  });
}

// --- Host

template <class Launcher>
void launch_swiglu_forward(Launcher& launcher, const TensorView& gate, const TensorView& up,
                           const TensorView& y) {
  const std::int64_t count = y.count();
  for (const TensorView& like : {gate, up}) ensure(like.count() == count && like.dtype == y.dtype);
  const bool aligned = is_aligned(gate) && is_aligned(up) && is_aligned(y);
  with_float_type(y.dtype, [&](auto element) {
    using T = decltype(element);
    launcher.launch("swiglu_forward", swiglu_forward_kernel<T>,
                    elementwise_shape(count, launcher.limits()), Global<const T>(gate),
                    Global<const T>(up), Global<T>(y), count, aligned);
  });
}

template <class Launcher>
void launch_swiglu_backward(Launcher& launcher, const TensorView& dy, const TensorView& gate,
                            const TensorView& up, const TensorView& dgate, const TensorView& dup) {
  const std::int64_t count = dy.count();
  bool aligned = is_aligned(dy);
  for (const TensorView& like : {gate, up, dgate, dup}) {
    ensure(like.count() == count && like.dtype == dy.dtype);
    aligned = aligned && is_aligned(like);
  }
  with_float_type(dy.dtype, [&](auto element) {
    using T = decltype(element);
    const SwigluBackward<T> args{Global<const T>(dy), Global<T>(gate), Global<T>(up),
                                 Global<T>(dgate), Global<T>(dup)};
    launcher.launch("swiglu_backward", swiglu_backward_kernel<T>,
                    elementwise_shape(count, launcher.limits()), args, count, aligned);
  });
}

}  // namespace strata::cuda
