#pragma once
// Casts and sums element by element: eight elements a thread, strided over the grid.

#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/launch_shape.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata::cuda {

// Calls f(span) for the spans of [0, count) that are this thread's.
template <class F>
STRATA_DEVICE void for_each_span(std::int64_t count, bool aligned, F f) {
  const std::int64_t thread = block_x() * block_threads() + thread_index();
  const std::int64_t stride = grid_x() * block_threads() * group_elements;
  for (std::int64_t first = thread * group_elements; first < count; first += stride)
    f(span_at(first, count, aligned));
}

template <class S, class T>
STRATA_KERNEL(256)
cast_kernel(Global<const S> source, Global<T> target, std::int64_t count, bool aligned) {
  for_each_span(count, aligned,
                [&](const Span& span) { store_floats(target, span, load_floats(source, span)); });
}

template <class W>
STRATA_KERNEL(256)
cast_weight_kernel(Global<const float> master, Global<W> weight, std::int64_t count, bool aligned) {
  for_each_span(count, aligned, [&](const Span& span) {
    const Floats p = load_floats(master, span);
    Group<W, group_elements> group{};
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) group[i] = working_weight<W>(p[i]);
    store_span(weight, span, group);
  });
}

template <class S>
STRATA_KERNEL(256)
accumulate_kernel(Global<const S> source, Global<float> target, std::int64_t count, bool aligned) {
  for_each_span(count, aligned, [&](const Span& span) {
    const Floats added = load_floats(source, span);
    Floats total = load_floats(target, span);
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) total[i] = total[i] + added[i];
    store_floats(target, span, total);
  });
}

// out may be a: not declared const, as a thread may write what it has just read.
template <class T>
STRATA_KERNEL(256)
add_kernel(Global<T> a, Global<T> b, Global<T> out, std::int64_t count, bool aligned) {
  for_each_span(count, aligned, [&](const Span& span) {
    Floats total = load_floats(a, span);
    const Floats added = load_floats(b, span);
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) total[i] = total[i] + added[i];
    store_floats(out, span, total);
  });
}

// --- Host

inline LaunchShape elementwise_shape(std::int64_t count, const DeviceLimits& limits) {
  return strided_shape(ceil_div(count, group_elements), limits);
}

template <class Launcher>
void launch_cast(Launcher& launcher, const TensorView& source, const TensorView& target) {
  const std::int64_t count = source.count();
  ensure(target.count() == count);
  const bool aligned = is_aligned(source) && is_aligned(target);
  with_float_type(source.dtype, [&](auto from) {
    with_float_type(target.dtype, [&](auto to) {
      using S = decltype(from);
      using T = decltype(to);
      launcher.launch("cast", cast_kernel<S, T>, elementwise_shape(count, launcher.limits()),
                      Global<const S>(source), Global<T>(target), count, aligned);
    });
  });
}

template <class Launcher>
void launch_cast_weight(Launcher& launcher, const TensorView& master, const TensorView& weight) {
  const std::int64_t count = master.count();
  ensure(master.dtype == DType::f32 && weight.count() == count);
  const bool aligned = is_aligned(master) && is_aligned(weight);
  with_float_type(weight.dtype, [&](auto to) {
    using W = decltype(to);
    launcher.launch("cast_weight", cast_weight_kernel<W>,
                    elementwise_shape(count, launcher.limits()), Global<const float>(master),
                    Global<W>(weight), count, aligned);
  });
}

template <class Launcher>
void launch_accumulate(Launcher& launcher, const TensorView& source, const TensorView& target,
                       Accumulate accumulate) {
  const std::int64_t count = source.count();
  ensure(target.dtype == DType::f32 && target.count() == count);
  if (accumulate == Accumulate::no) return launch_cast(launcher, source, target);
  const bool aligned = is_aligned(source) && is_aligned(target);
  with_float_type(source.dtype, [&](auto from) {
    using S = decltype(from);
    launcher.launch("accumulate", accumulate_kernel<S>, elementwise_shape(count, launcher.limits()),
                    Global<const S>(source), Global<float>(target), count, aligned);
  });
}

template <class Launcher>
void launch_add(Launcher& launcher, const TensorView& a, const TensorView& b,
                const TensorView& out) {
  const std::int64_t count = out.count();
  ensure(a.count() == count && b.count() == count && a.dtype == out.dtype && b.dtype == out.dtype);
  const bool aligned = is_aligned(a) && is_aligned(b) && is_aligned(out);
  with_float_type(out.dtype, [&](auto element) {
    using T = decltype(element);
    launcher.launch("add", add_kernel<T>, elementwise_shape(count, launcher.limits()), Global<T>(a),
                    Global<T>(b), Global<T>(out), count, aligned);
  });
}

}  // namespace strata::cuda
