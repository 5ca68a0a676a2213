#pragma once
// RMSNorm over rows of h elements: of the residual stream, or of the heads of q and k. A row is the
// work of a team of warps: one warp where rows are short, the whole block where they are long. In
// backward a block takes a group of rows and sums their dw; groups are then summed in order.

#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/floats.cuh"
#include "kernels/cuda/reductions.cuh"
#include "strata/kernels/kernels.hpp"

namespace strata::cuda {

inline constexpr int norm_threads = norm_warps * warp_threads;
inline constexpr std::int64_t partials_bytes =
    norm_warps * static_cast<std::int64_t>(sizeof(float));

template <int team_warps>
struct Team {
  static constexpr int threads = team_warps * warp_threads;
  static constexpr int in_block = norm_warps / team_warps;

  STRATA_DEVICE static int index() { return warp_index() / team_warps; }
  STRATA_DEVICE static int member() { return thread_index() % threads; }

  // Calls f(span) for the member's spans of a row of h elements, as columns.
  template <class F>
  STRATA_DEVICE static void for_each_span(std::int64_t h, bool aligned, F f) {
    for (std::int64_t j = member() * group_elements; j < h; j += threads * group_elements)
      f(span_at(j, h, aligned));
  }
  STRATA_DEVICE static float sum(float value, const Shared<float>& partials) {
    if constexpr (team_warps == 1) {
      return warp_sum(value);
    } else {
      return block_sum<team_warps>(value, partials);
    }
  }
};

STRATA_DEVICE Span in_row(Span columns, std::int64_t row, std::int64_t h) {
  columns.first += row * h;
  return columns;
}

// --- Forward

template <class T>
struct NormForward {
  Global<const T> x_th, w_h;
  Global<T> y_th;
  Global<float> rstd_t;
  std::int64_t num_rows, h;
  float epsilon;
  bool aligned;
};

template <class T, int team_warps>
STRATA_KERNEL(norm_threads)
rmsnorm_forward_kernel(NormForward<T> args) {
  using Rows = Team<team_warps>;
  const std::int64_t row = block_x() * Rows::in_block + Rows::index();
  if (row >= args.num_rows) return;
  float squares = 0;
  Rows::for_each_span(args.h, args.aligned, [&](const Span& columns) {
    const Floats x = load_floats(args.x_th, in_row(columns, row, args.h));
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) squares += x[i] * x[i];
  });
  squares = Rows::sum(squares, Shared<float>(0, norm_warps));
  const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(args.h) + args.epsilon);
  Rows::for_each_span(args.h, args.aligned, [&](const Span& columns) {
    Floats y = load_floats(args.x_th, in_row(columns, row, args.h));
    const Floats w = load_floats(args.w_h, columns);
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) y[i] = y[i] * rstd * w[i];
    store_floats(args.y_th, in_row(columns, row, args.h), y);
  });
  if (Rows::member() == 0) args.rstd_t.store(row, rstd);
}

// --- Backward

template <class T>
struct NormBackward {
  Global<const T> dy_th, x_th, w_h;
  Global<const float> rstd_t;
  Global<T> dx_th;
  Global<float> groups_gh;  // each group's dw
  std::int64_t num_rows, h;
  Accumulate accumulate_dx;
  bool aligned;
};

// With n = x rstd: dx = rstd (dy w - n mean(dy w n)), and dw += dy n in the team's row of shared
// memory, whose columns belong to one thread each.
template <class T, int team_warps>
STRATA_DEVICE void norm_backward_row(const NormBackward<T>& args, std::int64_t row,
                                     const Shared<float>& partials, const Shared<float>& dw) {
  using Rows = Team<team_warps>;
  const float rstd = args.rstd_t.load(row);
  float dot = 0;
  Rows::for_each_span(args.h, args.aligned, [&](const Span& columns) {
    const Floats dy = load_floats(args.dy_th, in_row(columns, row, args.h));
    const Floats x = load_floats(args.x_th, in_row(columns, row, args.h));
    const Floats w = load_floats(args.w_h, columns);
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) dot += dy[i] * w[i] * x[i];
  });
  const float pull = Rows::sum(dot, partials) * rstd * rstd / static_cast<float>(args.h);
  Rows::for_each_span(args.h, args.aligned, [&](const Span& columns) {
    const Span at = in_row(columns, row, args.h);
    const Floats dy = load_floats(args.dy_th, at), x = load_floats(args.x_th, at);
    const Floats w = load_floats(args.w_h, columns);
    Floats dx{};
    if (args.accumulate_dx == Accumulate::yes) dx = load_floats(args.dx_th, at);
    STRATA_UNROLL
    for (int i = 0; i < group_elements; ++i) {
      dx[i] += rstd * (dy[i] * w[i] - x[i] * pull);
      if (i >= columns.count) continue;
      const int j = Rows::index() * static_cast<int>(args.h) + static_cast<int>(columns.first) + i;
      dw.store(j, dw.load(j) + dy[i] * (x[i] * rstd));
    }
    store_floats(args.dx_th, at, dx);
  });
}

template <class T, int team_warps>
STRATA_KERNEL(norm_threads)
rmsnorm_backward_kernel(NormBackward<T> args) {
  using Rows = Team<team_warps>;
  const int dw_count = Rows::in_block * static_cast<int>(args.h);
  const Shared<float> partials(0, norm_warps), dw(partials_bytes, dw_count);
  for (int j = thread_index(); j < dw_count; j += norm_threads) dw.store(j, 0);
  sync_threads();
  const std::int64_t first =
      block_x() * group_rows<team_warps> + Rows::index() * team_rows<team_warps>;
  for (int i = 0; i < team_rows<team_warps> && first + i < args.num_rows; ++i)
    norm_backward_row<T, team_warps>(args, first + i, partials, dw);
  sync_threads();
  for (int j = thread_index(); j < args.h; j += norm_threads) {
    float total = 0;
    for (int team = 0; team < Rows::in_block; ++team)
      total += dw.load(team * static_cast<int>(args.h) + j);
    args.groups_gh.store(block_x() * args.h + j, total);
  }
}

// --- Host

// Calls f with the number of warps that take a row of h elements, as a constant.
template <class F>
void with_team(std::int64_t h, F f) {
  if (h <= short_row_max) return f(std::integral_constant<int, 1>{});
  f(std::integral_constant<int, norm_warps>{});
}

template <int team_warps>
LaunchShape rmsnorm_forward_shape(std::int64_t num_rows) {
  return {ceil_div(num_rows, Team<team_warps>::in_block), 1, norm_threads, partials_bytes};
}

template <int team_warps>
LaunchShape rmsnorm_backward_shape(std::int64_t num_rows, std::int64_t h) {
  const std::int64_t dw_bytes = Team<team_warps>::in_block * h * std::int64_t{sizeof(float)};
  return {ceil_div(num_rows, group_rows<team_warps>), 1, norm_threads, partials_bytes + dw_bytes};
}

template <class Launcher>
void launch_rmsnorm_forward(Launcher& launcher, const TensorView& x_th, const TensorView& w_h,
                            float epsilon, const TensorView& y_th, const TensorView& rstd_t) {
  const std::int64_t t = x_th.dim(0), h = w_h.count();
  ensure(x_th.dim(1) == h && y_th.count() == t * h && rstd_t.count() == t);
  ensure(w_h.dtype == x_th.dtype && y_th.dtype == x_th.dtype && rstd_t.dtype == DType::f32);
  const bool aligned = is_aligned(x_th, h) && is_aligned(w_h) && is_aligned(y_th);
  with_float_type(x_th.dtype, [&](auto element) {
    using T = decltype(element);
    const NormForward<T> args{Global<const T>(x_th),
                              Global<const T>(w_h),
                              Global<T>(y_th),
                              Global<float>(rstd_t),
                              t,
                              h,
                              epsilon,
                              aligned};
    with_team(h, [&](auto team) {
      launcher.launch("rmsnorm_forward", rmsnorm_forward_kernel<T, team()>,
                      rmsnorm_forward_shape<team()>(t), args);
    });
  });
}

template <class Launcher>
void launch_rmsnorm_backward(Launcher& launcher, const TensorView& dy_th, const TensorView& x_th,
                             const TensorView& w_h, const TensorView& rstd_t,
                             const TensorView& dx_th, Accumulate accumulate_dx,
                             const TensorView& dw_h, std::span<std::byte> scratch) {
  const std::int64_t t = x_th.dim(0), h = w_h.count();
  ensure(x_th.dim(1) == h && dy_th.count() == t * h && dx_th.count() == t * h);
  ensure(rstd_t.count() == t && dw_h.count() == h && rstd_t.dtype == DType::f32);
  for (const TensorView& like : {dy_th, w_h, dx_th, dw_h}) ensure(like.dtype == x_th.dtype);
  const bool aligned =
      is_aligned(dy_th, h) && is_aligned(x_th) && is_aligned(w_h) && is_aligned(dx_th);
  with_float_type(x_th.dtype, [&](auto element) {
    using T = decltype(element);
    with_team(h, [&](auto team) {
      const LaunchShape shape = rmsnorm_backward_shape<team()>(t, h);
      const Global<float> groups_gh = scratch_array<float>(scratch, shape.grid_x * h);
      const NormBackward<T> args{Global<const T>(dy_th),
                                 Global<const T>(x_th),
                                 Global<const T>(w_h),
                                 Global<const float>(rstd_t),
                                 Global<T>(dx_th),
                                 groups_gh,
                                 t,
                                 h,
                                 accumulate_dx,
                                 aligned};
      launcher.launch("rmsnorm_backward", rmsnorm_backward_kernel<T, team()>, shape, args);
      launch_column_sums<float>(launcher, Global<const float>(groups_gh), shape.grid_x, dw_h,
                                h % group_elements == 0);
    });
  });
}

}  // namespace strata::cuda
