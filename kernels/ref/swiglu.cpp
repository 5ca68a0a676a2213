#include "kernels/common/activation_formulas.hpp"
#include "kernels/ref/doubles.hpp"
#include "kernels/ref/ref_ops.hpp"

namespace strata::ref {

void swiglu_forward(TensorView gate_tf, TensorView up_tf, TensorView y_tf) {
  ensure(gate_tf.count() == y_tf.count() && up_tf.count() == y_tf.count());
  const Doubles gate = read(gate_tf), up = read(up_tf);
  Doubles y(gate.size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = swiglu(gate[i], up[i]);
  write(y, y_tf);
}

void swiglu_backward(TensorView dy_tf, TensorView gate_tf, TensorView up_tf, TensorView dgate_tf,
                     TensorView dup_tf) {
  ensure(gate_tf.count() == dy_tf.count() && up_tf.count() == dy_tf.count());
  const Doubles dy = read(dy_tf), gate = read(gate_tf), up = read(up_tf);
  Doubles dgate(dy.size()), dup(dy.size());
  for (std::size_t i = 0; i < dy.size(); ++i) {
    const SwigluGradient<double> gradient = swiglu_gradient(dy[i], gate[i], up[i]);
    dgate[i] = gradient.gate;
    dup[i] = gradient.up;
  }
  write(dgate, dgate_tf);
  write(dup, dup_tf);
}

}  // namespace strata::ref
