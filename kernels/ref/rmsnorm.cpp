#include <cmath>

#include "kernels/ref/doubles.hpp"
#include "kernels/ref/ref_ops.hpp"

namespace strata::ref {

void rmsnorm_forward(TensorView x_th, TensorView w_h, double epsilon, TensorView y_th,
                     TensorView rstd_t) {
  const std::int64_t num_tokens = x_th.dim(0), h = w_h.count();
  ensure(x_th.dim(1) == h && y_th.count() == x_th.count() && rstd_t.count() == num_tokens);
  const Doubles x = read(x_th), w = read(w_h);
  Doubles y(x.size());
  for (std::int64_t t = 0; t < num_tokens; ++t) {
    const double* row = &x[static_cast<std::size_t>(t * h)];
    double squares = 0;
    for (std::int64_t j = 0; j < h; ++j) squares += row[j] * row[j];
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(h) + epsilon);
    for (std::int64_t j = 0; j < h; ++j) {
      y[static_cast<std::size_t>(t * h + j)] = row[j] * rstd * w[static_cast<std::size_t>(j)];
    }
    set_element(rstd_t, t, rstd);
  }
  write(y, y_th);
}

// With n = x rstd: dx = rstd (dy w - n mean(dy w n)), dw = sum over tokens of dy n.
void rmsnorm_backward(TensorView dy_th, TensorView x_th, TensorView w_h, TensorView rstd_t,
                      TensorView dx_th, Accumulate accumulate_dx, TensorView dw_h) {
  const std::int64_t num_tokens = x_th.dim(0), h = w_h.count();
  ensure(x_th.dim(1) == h && dy_th.count() == x_th.count() && dx_th.count() == x_th.count());
  ensure(rstd_t.count() == num_tokens && dw_h.count() == h);
  const Doubles dy = read(dy_th), x = read(x_th), w = read(w_h);
  Doubles dx = accumulate_dx == Accumulate::yes ? read(dx_th) : Doubles(x.size(), 0.0);
  Doubles dw(w.size(), 0.0);
  for (std::int64_t t = 0; t < num_tokens; ++t) {
    const auto row = static_cast<std::size_t>(t * h);
    const double rstd = element(rstd_t, t);
    double mean = 0;
    for (std::size_t j = 0; j < w.size(); ++j)
      mean += dy[row + j] * w[j] * x[row + j] * rstd / static_cast<double>(h);
    for (std::size_t j = 0; j < w.size(); ++j) {
      const double n = x[row + j] * rstd;
      dx[row + j] += rstd * (dy[row + j] * w[j] - n * mean);
      dw[j] += dy[row + j] * n;
    }
  }
  write(dx, dx_th);
  write(dw, dw_h);
}

}  // namespace strata::ref
