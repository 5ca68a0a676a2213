#include "kernels/cpu/rmsnorm.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/parallel.hpp"
#include "kernels/cpu/scratch.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rmsnorm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#include "kernels/cpu/elements-inl.h"

HWY_BEFORE_NAMESPACE();
namespace strata::cpu {
namespace HWY_NAMESPACE {

template <class T>
HWY_INLINE float forward_row(const T* x, const T* w, float epsilon, std::int64_t h, T* y) {
  const float squares = sum_vectors(0, h, [&](auto d, std::int64_t j) HWY_ATTR {
    const auto v = load(d, x + j);
    return hn::Mul(v, v);
  });
  const float rstd = 1.0f / std::sqrt(squares / static_cast<float>(h) + epsilon);
  for_each_vector(0, h, [&](auto d, std::int64_t j) HWY_ATTR {
    store(d, hn::Mul(hn::Mul(load(d, x + j), hn::Set(d, rstd)), load(d, w + j)), y + j);
  });
  return rstd;
}

void rmsnorm_forward_rows(TensorView x_th, TensorView w_h, float epsilon, TensorView y_th,
                          float* rstd, std::int64_t begin, std::int64_t end) {
  const std::int64_t h = w_h.count();
  with_element(x_th.dtype, [&](auto* type) HWY_ATTR {
    using T = std::remove_pointer_t<decltype(type)>;
    for (std::int64_t t = begin; t < end; ++t) {
      rstd[t] = forward_row(x_th.as<const T>() + t * h, w_h.as<const T>(), epsilon, h,
                            y_th.as<T>() + t * h);
    }
  });
}

struct RowGradient {
  float rstd;
  Accumulate accumulate_dx;
  std::int64_t h;
};

// With n = x rstd: dx = rstd (dy w - n mean(dy w n)) and dw += dy n.
template <class T>
HWY_INLINE void backward_row(const RowGradient& row, const T* dy, const T* x, const T* w, T* dx,
                             float* dw) {
  const float dot = sum_vectors(0, row.h, [&](auto d, std::int64_t j) HWY_ATTR {
    return hn::Mul(hn::Mul(load(d, dy + j), load(d, w + j)), load(d, x + j));
  });
  const float pull = dot * row.rstd * row.rstd / static_cast<float>(row.h);
  for_each_vector(0, row.h, [&](auto d, std::int64_t j) HWY_ATTR {
    const auto rstd = hn::Set(d, row.rstd);
    const auto dyj = load(d, dy + j);
    const auto xj = load(d, x + j);
    const auto toward = hn::Sub(hn::Mul(dyj, load(d, w + j)), hn::Mul(xj, hn::Set(d, pull)));
    const auto gradient = hn::Mul(rstd, toward);
    store(d, hn::Add(load(d, dw + j), hn::Mul(dyj, hn::Mul(xj, rstd))), dw + j);
    store(d, row.accumulate_dx == Accumulate::yes ? hn::Add(load(d, dx + j), gradient) : gradient,
          dx + j);
  });
}

void rmsnorm_backward_rows(TensorView dy_th, TensorView x_th, TensorView w_h, const float* rstd,
                           TensorView dx_th, Accumulate accumulate_dx, float* dw,
                           std::int64_t begin, std::int64_t end) {
  const std::int64_t h = w_h.count();
  with_element(x_th.dtype, [&](auto* type) HWY_ATTR {
    using T = std::remove_pointer_t<decltype(type)>;
    for (std::int64_t t = begin; t < end; ++t) {
      backward_row<T>({rstd[t], accumulate_dx, h}, dy_th.as<const T>() + t * h,
                      x_th.as<const T>() + t * h, w_h.as<const T>(), dx_th.as<T>() + t * h, dw);
    }
  });
}

// dw = the sum of the groups' rows, in order.
void combine_groups(const float* groups_gh, std::int64_t num_groups, TensorView dw_h,
                    std::int64_t begin, std::int64_t end) {
  const std::int64_t h = dw_h.count();
  with_element(dw_h.dtype, [&](auto* type) HWY_ATTR {
    auto* dw = dw_h.as<std::remove_pointer_t<decltype(type)>>();
    for_each_vector(begin, end, [&](auto d, std::int64_t j) HWY_ATTR {
      auto total = hn::Zero(d);
      for (std::int64_t group = 0; group < num_groups; ++group) {
        total = hn::Add(total, load(d, groups_gh + group * h + j));
      }
      store(d, total, dw + j);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace strata::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strata::cpu {
namespace {

HWY_EXPORT(rmsnorm_forward_rows);
HWY_EXPORT(rmsnorm_backward_rows);
HWY_EXPORT(combine_groups);

constexpr std::int64_t tokens_per_group = 16;
constexpr std::int64_t columns_per_task = 256;

void check_shapes(TensorView x_th, TensorView w_h, TensorView rstd_t) {
  ensure(x_th.dim(1) == w_h.count() && x_th.dim(0) == rstd_t.count());
  ensure(x_th.dtype == w_h.dtype && rstd_t.dtype == DType::f32);
}

void check_like(TensorView tensor, TensorView other) {
  ensure(tensor.dtype == other.dtype && tensor.count() == other.count());
}

}  // namespace

void rmsnorm_forward(Parallel& parallel, TensorView x_th, TensorView w_h, float epsilon,
                     TensorView y_th, TensorView rstd_t) {
  check_shapes(x_th, w_h, rstd_t);
  check_like(y_th, x_th);
  parallel.for_chunks(x_th.dim(0), tokens_per_group, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(rmsnorm_forward_rows)
    (x_th, w_h, epsilon, y_th, rstd_t.as<float>(), begin, end);
  });
}

void rmsnorm_backward(Parallel& parallel, TensorView dy_th, TensorView x_th, TensorView w_h,
                      TensorView rstd_t, TensorView dx_th, Accumulate accumulate_dx,
                      TensorView dw_h, std::span<std::byte> scratch) {
  check_shapes(x_th, w_h, rstd_t);
  check_like(dy_th, x_th);
  check_like(dx_th, x_th);
  check_like(dw_h, w_h);
  const std::int64_t h = w_h.count();
  const std::int64_t num_groups = ceil_div(x_th.dim(0), tokens_per_group);
  float* groups_gh = scratch_array<float>(scratch, num_groups * h).data();
  parallel.for_chunks(x_th.dim(0), tokens_per_group, [&](std::int64_t begin, std::int64_t end) {
    float* dw = groups_gh + begin / tokens_per_group * h;
    std::fill_n(dw, h, 0.0f);
    HWY_DYNAMIC_DISPATCH(rmsnorm_backward_rows)
    (dy_th, x_th, w_h, rstd_t.as<const float>(), dx_th, accumulate_dx, dw, begin, end);
  });
  parallel.for_chunks(h, columns_per_task, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(combine_groups)(groups_gh, num_groups, dw_h, begin, end);
  });
}

std::uint64_t rmsnorm_scratch_bytes(std::int64_t t, std::int64_t h) {
  return scratch_bytes<float>(ceil_div(t, tokens_per_group) * h);
}

}  // namespace strata::cpu
#endif
