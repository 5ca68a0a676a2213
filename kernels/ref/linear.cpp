#include "kernels/ref/doubles.hpp"
#include "kernels/ref/ref_ops.hpp"

namespace strata::ref {
namespace {

// How a matrix is walked: element (row, column) lies at row * row_stride + column * column_stride.
struct Matrix {
  const Doubles& values;
  std::size_t row_stride;
  std::size_t column_stride;
};

// out[m, n] (+)= sum over i in [0, depth) of a(m, i) b(i, n).
void multiply(Matrix a, Matrix b, std::size_t depth, TensorView out_mn, Accumulate accumulate) {
  const auto rows = static_cast<std::size_t>(out_mn.dim(0)),
             columns = static_cast<std::size_t>(out_mn.dim(1));
  Doubles out = accumulate == Accumulate::yes ? read(out_mn) : Doubles(rows * columns, 0.0);
  for (std::size_t m = 0; m < rows; ++m) {
    for (std::size_t n = 0; n < columns; ++n) {
      double dot = 0;
      const double* left = a.values.data() + m * a.row_stride;
      const double* right = b.values.data() + n * b.column_stride;
      for (std::size_t i = 0; i < depth; ++i)
        dot += left[i * a.column_stride] * right[i * b.row_stride];
      out[m * columns + n] += dot;
    }
  }
  write(out, out_mn);
}

// The bias is one more input that is always 1, so that each output is one sum, rounded once.
Doubles with_column(const Doubles& rows, std::size_t columns, const Doubles& column) {
  Doubles result;
  for (std::size_t row = 0; row < column.size(); ++row) {
    for (std::size_t i = 0; i < columns; ++i) result.push_back(rows[row * columns + i]);
    result.push_back(column[row]);
  }
  return result;
}

void check_shapes(TensorView input_tk, TensorView w_nk, TensorView output_tn) {
  ensure(input_tk.dim(0) == output_tn.dim(0) && input_tk.dim(1) == w_nk.dim(1) &&
         output_tn.dim(1) == w_nk.dim(0));
}

}  // namespace

void linear_forward(TensorView x_tk, TensorView w_nk, TensorView bias_n, TensorView y_tn,
                    Accumulate accumulate) {
  check_shapes(x_tk, w_nk, y_tn);
  auto k = static_cast<std::size_t>(x_tk.dim(1));
  Doubles x = read(x_tk), w = read(w_nk);
  if (!bias_n.empty()) {
    ensure(bias_n.count() == w_nk.dim(0));
    x = with_column(x, k, Doubles(x.size() / k, 1.0));
    w = with_column(w, k, read(bias_n));
    ++k;
  }
  multiply({x, k, 1}, {w, 1, k}, k, y_tn, accumulate);
}

void linear_backward_input(TensorView dy_tn, TensorView w_nk, TensorView dx_tk,
                           Accumulate accumulate) {
  check_shapes(dx_tk, w_nk, dy_tn);
  const auto n = static_cast<std::size_t>(w_nk.dim(0)), k = static_cast<std::size_t>(w_nk.dim(1));
  multiply({read(dy_tn), n, 1}, {read(w_nk), k, 1}, n, dx_tk, accumulate);
}

void linear_backward_weight(TensorView dy_tn, TensorView x_tk, TensorView dw_nk,
                            Accumulate accumulate) {
  check_shapes(x_tk, dw_nk, dy_tn);
  const auto n = static_cast<std::size_t>(dw_nk.dim(0)), k = static_cast<std::size_t>(dw_nk.dim(1));
  multiply({read(dy_tn), 1, n}, {read(x_tk), k, 1}, static_cast<std::size_t>(dy_tn.dim(0)), dw_nk,
           accumulate);
}

void bias_backward(TensorView dy_tn, TensorView db_n) {
  const Doubles dy = read(dy_tn);
  Doubles db(static_cast<std::size_t>(db_n.count()), 0.0);
  ensure(dy_tn.dim(1) == db_n.count());
  for (std::size_t i = 0; i < dy.size(); ++i) db[i % db.size()] += dy[i];
  write(db, db_n);
}

}  // namespace strata::ref
