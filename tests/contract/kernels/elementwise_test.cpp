#include <bit>
#include <limits>

#include "contract/kernels/kernels_harness.hpp"

namespace strata::testing {
namespace {

class ElementwiseContract : public KernelsContract {
 protected:
  PhiloxStream random_{15, 0};
};

TEST_P(ElementwiseContract, AddsAlsoInPlace) {
  for (std::int64_t n : {1, 3, 17, 130, 70001}) {
    const Tensor a = random_normal(random_, dtype(), {n}), b = random_normal(random_, dtype(), {n});
    Tensor out = copy_of(a), expected(DType::f64, {n});
    kernels().add(out, b, out, stream());
    oracle().add(converted(a, DType::f64), converted(b, DType::f64), expected, stream());
    expect_close(out, expected, "out");
  }
}

TEST_P(ElementwiseContract, CastsFromF32ToNearestEvenAsCoreDoes) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values = {0.0,     -0.0,  1.00390625, 1.01171875, 3.4e38,
                                -3.4e38, 1e-40, inf,        -inf,       1.0};
  for (int i = 0; i < 200; ++i) values.push_back(random_.next_normal());
  Tensor source(DType::f32, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i)
    source.set(static_cast<std::int64_t>(i), values[i]);
  Tensor target(dtype(), source.view().shape);
  kernels().cast(source, target, stream());
  EXPECT_EQ(target.bits(), converted(source, dtype()).bits());
}

TEST_P(ElementwiseContract, KeepsNanWhenCasting) {
  Tensor source(DType::f32, {33});
  for (std::int64_t i = 0; i < 33; ++i)
    source.view().as<float>()[i] = std::bit_cast<float>(0x7f800001u);
  Tensor target(dtype(), {33});
  kernels().cast(source, target, stream());
  for (std::int64_t i = 0; i < 33; ++i) EXPECT_NE(target.at(i), target.at(i)) << i;
}

TEST_P(ElementwiseContract, WidensWithoutLoss) {
  const Tensor source = random_normal(random_, dtype(), {131});
  Tensor target(DType::f32, {131});
  kernels().cast(source, target, stream());
  for (std::int64_t i = 0; i < 131; ++i) EXPECT_EQ(target.at(i), source.at(i));
}

TEST_P(ElementwiseContract, SumsInDoubleInIndexOrder) {
  const Tensor values_t = random_normal(random_, DType::f32, {1001}, 1e6);
  Tensor total(DType::f64, {1});
  kernels().sum(values_t, total, stream());
  double expected = 0;
  for (std::int64_t i = 0; i < 1001; ++i) expected += values_t.at(i);
  EXPECT_EQ(total.at(0), expected);
}

INSTANTIATE_TEST_SUITE_P(Kernels, ElementwiseContract, every_case(), case_name);

}  // namespace
}  // namespace strata::testing
