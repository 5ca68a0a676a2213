// The reference's backward ops against finite differences of its forward ops, in f64.

#include <cmath>

#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {
namespace {

class ReferenceGradients : public ::testing::Test {
 protected:
  Tensor normal(Shape shape) { return random_normal(random_, DType::f64, shape); }
  Stream& stream() { return host_stream(); }
  Kernels& ref() { return *ref_; }

  // sum over elements of output * probe: a scalar whose gradient with respect to the output is the
  // probe.
  static double dot(const Tensor& output, const Tensor& probe) {
    double total = 0;
    for (std::int64_t i = 0; i < output.count(); ++i) total += output.at(i) * probe.at(i);
    return total;
  }

  template <typename F>
  static void expect_gradient(const std::string& what, Tensor& input, const Tensor& gradient,
                              F loss) {
    const double step = 1e-5;
    Tensor differences(DType::f64, input.view().shape);
    for (std::int64_t i = 0; i < input.count(); ++i) {
      const double value = input.at(i);
      input.set(i, value + step);
      const double above = loss();
      input.set(i, value - step);
      const double below = loss();
      input.set(i, value);
      differences.set(i, (above - below) / (2 * step));
    }
    expect_close(gradient, differences, 1e-7, what);
  }

 private:
  PhiloxStream random_{31, 0};
  std::unique_ptr<Kernels> ref_ = make_ref_kernels();
};

TEST_F(ReferenceGradients, OfEmbedding) {
  const Tensor tokens_t = integers({2, 0, 2, 4});
  Tensor table_vh = normal({5, 3});
  const Tensor probe = normal({4, 3}), out(DType::f64, {4, 3}), dtable_vh(DType::f64, {5, 3});
  ref().embedding_backward(tokens_t, probe, dtable_vh, {}, stream());
  expect_gradient("table", table_vh, dtable_vh, [&] {
    ref().embedding_forward(tokens_t, table_vh, out, stream());
    return dot(out, probe);
  });
}

TEST_F(ReferenceGradients, OfRmsNorm) {
  Tensor x_th = normal({3, 7}), w_h = normal({7});
  const Tensor probe = normal({3, 7}), y_th(DType::f64, {3, 7}), rstd_t(DType::f64, {3});
  const Tensor dx_th(DType::f64, {3, 7}), dw_h(DType::f64, {7});
  const auto loss = [&] {
    ref().rmsnorm_forward(x_th, w_h, 1e-2f, y_th, rstd_t, stream());
    return dot(y_th, probe);
  };
  loss();
  ref().rmsnorm_backward(probe, x_th, w_h, rstd_t, dx_th, Accumulate::no, dw_h, {}, stream());
  expect_gradient("x", x_th, dx_th, loss);
  expect_gradient("w", w_h, dw_h, loss);
}

TEST_F(ReferenceGradients, OfLinear) {
  Tensor x_tk = normal({3, 5}), w_nk = normal({4, 5}), bias_n = normal({4});
  const Tensor probe = normal({3, 4}), y_tn(DType::f64, {3, 4});
  const Tensor dx_tk(DType::f64, {3, 5}), dw_nk(DType::f64, {4, 5}), db_n(DType::f64, {4});
  ref().linear_backward_input(probe, w_nk, dx_tk, Accumulate::no, stream());
  ref().linear_backward_weight(probe, x_tk, dw_nk, Accumulate::no, stream());
  ref().bias_backward(probe, db_n, stream());
  const auto loss = [&] {
    ref().linear_forward(x_tk, w_nk, bias_n, y_tn, Accumulate::no, stream());
    return dot(y_tn, probe);
  };
  expect_gradient("x", x_tk, dx_tk, loss);
  expect_gradient("w", w_nk, dw_nk, loss);
  expect_gradient("bias", bias_n, db_n, loss);
}

TEST_F(ReferenceGradients, OfRope) {
  Tensor x_thd = normal({5, 2, 6});
  const Tensor document_start_t = integers({0, 0, 0, 3, 3}), dx_thd = normal({5, 2, 6}),
               probe = copy_of(dx_thd);
  const std::vector<float> inverse_frequencies = {1.0f, 0.3f, 0.01f};
  ref().rope(dx_thd, document_start_t, inverse_frequencies, Rotation::inverse, stream());
  expect_gradient("x", x_thd, dx_thd, [&] {
    const Tensor y_thd = copy_of(x_thd);
    ref().rope(y_thd, document_start_t, inverse_frequencies, Rotation::forward, stream());
    return dot(y_thd, probe);
  });
}

TEST_F(ReferenceGradients, OfAttention) {
  Tensor q_tqd = normal({6, 4, 3}), k_tgd = normal({6, 2, 3}), v_tgd = normal({6, 2, 3});
  const Tensor document_start_t = integers({0, 0, 0, 0, 4, 4}), probe = normal({6, 4, 3});
  const Tensor out_tqd(DType::f64, {6, 4, 3}), lse_qt(DType::f64, {4, 6});
  const Tensor dq_tqd(DType::f64, {6, 4, 3}), dk_tgd(DType::f64, {6, 2, 3}),
      dv_tgd(DType::f64, {6, 2, 3});
  const AttentionArgs args{q_tqd,  k_tgd, v_tgd,  document_start_t, 0.7f,   out_tqd,
                           lse_qt, probe, dq_tqd, dk_tgd,           dv_tgd, {}};
  const auto loss = [&] {
    ref().attention_forward(args, stream());
    return dot(out_tqd, probe);
  };
  loss();
  ref().attention_backward(args, stream());
  expect_gradient("q", q_tqd, dq_tqd, loss);
  expect_gradient("k", k_tgd, dk_tgd, loss);
  expect_gradient("v", v_tgd, dv_tgd, loss);
}

TEST_F(ReferenceGradients, OfSwiGlu) {
  Tensor gate_tf = normal({3, 5}), up_tf = normal({3, 5});
  const Tensor probe = normal({3, 5}), y_tf(DType::f64, {3, 5});
  const Tensor dgate_tf(DType::f64, {3, 5}), dup_tf(DType::f64, {3, 5});
  ref().swiglu_backward(probe, gate_tf, up_tf, dgate_tf, dup_tf, stream());
  const auto loss = [&] {
    ref().swiglu_forward(gate_tf, up_tf, y_tf, stream());
    return dot(y_tf, probe);
  };
  expect_gradient("gate", gate_tf, dgate_tf, loss);
  expect_gradient("up", up_tf, dup_tf, loss);
}

TEST_F(ReferenceGradients, OfCrossEntropy) {
  Tensor logits_cv = normal({4, 7});
  const Tensor labels_c = integers({3, -100, 0, 6}), losses_c(DType::f64, {4}),
               dlogits_cv(DType::f64, {4, 7});
  const CrossEntropyArgs args{logits_cv, labels_c, 0.3, losses_c, dlogits_cv};
  ref().cross_entropy(args, stream());
  const Tensor gradient = copy_of(dlogits_cv);
  expect_gradient("logits", logits_cv, gradient, [&] {
    ref().cross_entropy(args, stream());
    return losses_c.at(0) + losses_c.at(1) + losses_c.at(2) + losses_c.at(3);
  });
}

}  // namespace
}  // namespace strata::testing
