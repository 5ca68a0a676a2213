#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {
namespace {

constexpr float epsilon = 1e-5f;

class RmsNormContract : public KernelsContract {
 protected:
  struct Case {
    Tensor x_th, w_h, dy_th, rstd_t, y_th;
  };

  Case make_case(std::int64_t t, std::int64_t h) {
    Case c{random_normal(random_, dtype(), {t, h}), random_normal(random_, dtype(), {h}),
           random_normal(random_, dtype(), {t, h}), Tensor(DType::f32, {t}),
           Tensor(dtype(), {t, h})};
    kernels().rmsnorm_forward(c.x_th, c.w_h, epsilon, c.y_th, c.rstd_t, stream());
    return c;
  }

  PhiloxStream random_{12, 0};
};

TEST_P(RmsNormContract, NormalisesEachRow) {
  for (std::int64_t t : {1, 3, 17, 130}) {
    for (std::int64_t h : {1, 8, 37, 576}) {
      const Case c = make_case(t, h);
      Tensor y_th(DType::f64, {t, h}), rstd_t(DType::f64, {t});
      oracle().rmsnorm_forward(converted(c.x_th, DType::f64), converted(c.w_h, DType::f64), epsilon,
                               y_th, rstd_t, stream());
      expect_close(c.y_th, y_th, "y");
      expect_close(c.rstd_t, rstd_t, "rstd");
    }
  }
}

TEST_P(RmsNormContract, GivesTheGradientsOfInputAndWeight) {
  for (std::int64_t t : {1, 3, 17, 130}) {
    for (std::int64_t h : {1, 8, 37, 576}) {
      const Case c = make_case(t, h);
      Tensor dx_th(dtype(), {t, h}), dw_h(dtype(), {h});
      Scratch scratch(kernels().rmsnorm_scratch_bytes(t, h));
      kernels().rmsnorm_backward(c.dy_th, c.x_th, c.w_h, c.rstd_t, dx_th, Accumulate::no, dw_h,
                                 scratch.span(), stream());
      Tensor expected_dx(DType::f64, {t, h}), expected_dw(DType::f64, {h});
      oracle().rmsnorm_backward(converted(c.dy_th, DType::f64), converted(c.x_th, DType::f64),
                                converted(c.w_h, DType::f64), c.rstd_t, expected_dx, Accumulate::no,
                                expected_dw, {}, stream());
      if (h > 1)
        expect_close(dx_th, expected_dx, "dx");  // With one element dx is all cancellation.
      expect_close(dw_h, expected_dw, "dw");
    }
  }
}

TEST_P(RmsNormContract, AddsToTheInputGradientWhenAsked) {
  const Case c = make_case(17, 37);
  Tensor dx_th(dtype(), {17, 37}), dw_h(dtype(), {37});
  Scratch scratch(kernels().rmsnorm_scratch_bytes(17, 37));
  kernels().rmsnorm_backward(c.dy_th, c.x_th, c.w_h, c.rstd_t, dx_th, Accumulate::no, dw_h,
                             scratch.span(), stream());
  const Tensor before = random_normal(random_, dtype(), {17, 37});
  Tensor sum_th = copy_of(before), expected(DType::f64, {17, 37});
  kernels().rmsnorm_backward(c.dy_th, c.x_th, c.w_h, c.rstd_t, sum_th, Accumulate::yes, dw_h,
                             scratch.span(), stream());
  for (std::int64_t i = 0; i < expected.count(); ++i) expected.set(i, before.at(i) + dx_th.at(i));
  expect_close(sum_th, expected, "dx");
}

INSTANTIATE_TEST_SUITE_P(Kernels, RmsNormContract, every_case(), case_name);

}  // namespace
}  // namespace strata::testing
