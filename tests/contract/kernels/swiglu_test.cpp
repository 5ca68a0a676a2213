#include <cmath>
#include <limits>

#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {
namespace {

class SwiGluContract : public KernelsContract {
 protected:
  PhiloxStream random_{13, 0};
};

TEST_P(SwiGluContract, GatesTheUpProjection) {
  for (std::int64_t t : {1, 3, 17, 130}) {
    const Tensor gate_tf = random_normal(random_, dtype(), {t, 43}, 4),
                 up_tf = random_normal(random_, dtype(), {t, 43});
    Tensor y_tf(dtype(), {t, 43}), expected(DType::f64, {t, 43});
    kernels().swiglu_forward(gate_tf, up_tf, y_tf, stream());
    oracle().swiglu_forward(converted(gate_tf, DType::f64), converted(up_tf, DType::f64), expected,
                            stream());
    expect_close(y_tf, expected, "y");
  }
}

TEST_P(SwiGluContract, GivesBothGradientsInPlace) {
  for (std::int64_t t : {1, 3, 17, 130}) {
    const Tensor dy_tf = random_normal(random_, dtype(), {t, 43});
    const Tensor gate_tf = random_normal(random_, dtype(), {t, 43}, 4),
                 up_tf = random_normal(random_, dtype(), {t, 43});
    Tensor dgate_tf = copy_of(gate_tf), dup_tf = copy_of(up_tf);
    kernels().swiglu_backward(dy_tf, dgate_tf, dup_tf, dgate_tf, dup_tf, stream());
    Tensor expected_dgate(DType::f64, {t, 43}), expected_dup(DType::f64, {t, 43});
    oracle().swiglu_backward(converted(dy_tf, DType::f64), converted(gate_tf, DType::f64),
                             converted(up_tf, DType::f64), expected_dgate, expected_dup, stream());
    expect_close(dgate_tf, expected_dgate, "dgate");
    expect_close(dup_tf, expected_dup, "dup");
  }
}

TEST_P(SwiGluContract, StaysFiniteForLargeGates) {
  const std::vector<double> gates = {-3e38, -1000, -104, -89, -88, 88, 104, 1000, 3e38};
  const auto n = static_cast<std::int64_t>(gates.size());
  Tensor gate_tf(dtype(), {1, n}), up_tf(dtype(), {1, n}), y_tf(dtype(), {1, n});
  for (std::int64_t i = 0; i < n; ++i)
    gate_tf.set(i, gates[static_cast<std::size_t>(i)]), up_tf.set(i, 1);
  kernels().swiglu_forward(gate_tf, up_tf, y_tf, stream());
  for (std::int64_t i = 0; i < n; ++i) {
    const double limit = gate_tf.at(i) > 0 ? gate_tf.at(i) : 0;
    EXPECT_NEAR(y_tf.at(i), limit, 2);
  }
}

TEST_P(SwiGluContract, LetsNanThrough) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor gate_tf(dtype(), {1, 33}), up_tf(dtype(), {1, 33}), y_tf(dtype(), {1, 33});
  for (std::int64_t i = 0; i < 33; ++i) gate_tf.set(i, i % 2 == 0 ? nan : 1.0), up_tf.set(i, 1);
  kernels().swiglu_forward(gate_tf, up_tf, y_tf, stream());
  for (std::int64_t i = 0; i < 33; ++i) EXPECT_EQ(std::isnan(y_tf.at(i)), i % 2 == 0) << i;
}

INSTANTIATE_TEST_SUITE_P(Kernels, SwiGluContract, every_case(), case_name);

}  // namespace
}  // namespace strata::testing
