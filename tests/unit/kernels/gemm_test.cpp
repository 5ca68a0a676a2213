#include "kernels/cpu/gemm.hpp"

#include <gtest/gtest.h>

#include "contract/kernels/linear_cases.hpp"
#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/parallel.hpp"

namespace strata::testing {
namespace {

class Linear : public ::testing::Test {
 protected:
  Tensor random(DType dtype, Shape shape) { return random_normal(random_, dtype, shape); }
  Tensor output(const LinearCase& c, Shape shape) { return linear_output(random_, c, shape); }

  PhiloxStream random_{7, 1};
  cpu::Parallel parallel_{2};
};

TEST_F(Linear, ForwardMultipliesByTransposedWeights) {
  for (const LinearCase& c : linear_cases()) {
    const Tensor x = random(c.storage, {c.t, c.k});
    const Tensor w = random(c.storage, {c.n, c.k});
    const Tensor y = output(c, {c.t, c.n});
    const Tensor expected = product(rows_of(x), columns_of(w), c.k, y, c.accumulate);
    cpu::linear_forward(parallel_, x, w, {}, y, c.accumulate);
    expect_close(y, expected, describe(c));
  }
}

TEST_F(Linear, ForwardAddsTheBiasToEachToken) {
  for (const LinearCase& c : linear_cases()) {
    const Tensor x = random(c.storage, {c.t, c.k});
    const Tensor w = random(c.storage, {c.n, c.k});
    const Tensor bias = random(c.storage, {c.n});
    const Tensor y = output(c, {c.t, c.n});
    Tensor expected = product(rows_of(x), columns_of(w), c.k, y, c.accumulate);
    for (std::int64_t i = 0; i < expected.count(); ++i)
      expected.set(i, expected.at(i) + bias.at(i % c.n));
    cpu::linear_forward(parallel_, x, w, bias, y, c.accumulate);
    expect_close(y, expected, describe(c));
  }
}

TEST_F(Linear, BackwardInputMultipliesByWeights) {
  for (const LinearCase& c : linear_cases()) {
    const Tensor dy = random(c.storage, {c.t, c.n});
    const Tensor w = random(c.storage, {c.n, c.k});
    const Tensor dx = output(c, {c.t, c.k});
    const Tensor expected = product(rows_of(dy), rows_of(w), c.n, dx, c.accumulate);
    cpu::linear_backward_input(parallel_, dy, w, dx, c.accumulate);
    expect_close(dx, expected, describe(c));
  }
}

TEST_F(Linear, BackwardWeightSumsOverTokens) {
  for (const LinearCase& c : linear_cases()) {
    const Tensor dy = random(c.storage, {c.t, c.n});
    const Tensor x = random(c.storage, {c.t, c.k});
    const Tensor dw = output(c, {c.n, c.k});
    const Tensor expected = product(columns_of(dy), rows_of(x), c.t, dw, c.accumulate);
    cpu::linear_backward_weight(parallel_, dy, x, dw, c.accumulate);
    expect_close(dw, expected, describe(c));
  }
}

TEST_F(Linear, BiasBackwardSumsColumns) {
  for (const LinearCase& c : linear_cases()) {
    const Tensor dy = random(c.storage, {c.t, c.n});
    const Tensor db(c.result, {c.n});
    Tensor sums(DType::f64, {c.n});
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = 0;
      for (std::int64_t i = 0; i < c.t; ++i) sum += dy.at(i * c.n + j);
      sums.set(j, sum);
    }
    cpu::bias_backward(parallel_, dy, db);
    expect_close(db, sums, describe(c));
  }
}

TEST_F(Linear, GivesTheSameBitsForAnyNumberOfThreads) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = random(dtype, {150, 70});
    const Tensor w = random(dtype, {500, 70});
    const Tensor dy = random(dtype, {150, 500});
    std::vector<std::string> bits;
    for (int threads : {1, 2, 5}) {
      cpu::Parallel parallel(threads);
      const Tensor y(dtype, {150, 500}), dx(dtype, {150, 70}), dw(DType::f32, {500, 70}),
          db(dtype, {500});
      cpu::linear_forward(parallel, x, w, {}, y, Accumulate::no);
      cpu::linear_backward_input(parallel, dy, w, dx, Accumulate::no);
      cpu::linear_backward_weight(parallel, dy, x, dw, Accumulate::no);
      cpu::bias_backward(parallel, dy, db);
      bits.push_back(y.bits() + dx.bits() + dw.bits() + db.bits());
    }
    EXPECT_EQ(bits[0], bits[1]);
    EXPECT_EQ(bits[0], bits[2]);
  }
}

// The path of processors without bf16 instructions.
TEST_F(Linear, WidenedProductsAgreeAcrossSlicesOfTheSummedDimension) {
  const std::int64_t m = 13, n = 21, k = 2500;
  for (DType result : {DType::f32, DType::bf16}) {
    for (Accumulate accumulate : {Accumulate::no, Accumulate::yes}) {
      const Tensor a = random(DType::bf16, {k, m});  // stored by columns
      const Tensor b = random(DType::bf16, {k, n});
      const Tensor bias = random(DType::bf16, {n});
      const Tensor c =
          accumulate == Accumulate::yes ? random(result, {m, n}) : Tensor(result, {m, n});
      Tensor expected = product(columns_of(a), rows_of(b), k, c, accumulate);
      for (std::int64_t i = 0; i < expected.count(); ++i)
        expected.set(i, expected.at(i) + bias.at(i % n));
      cpu::matmul_widened({.m = m,
                           .n = n,
                           .k = k,
                           .a_mk = {a.view().data, 1, m, DType::bf16},
                           .b_kn = {b.view().data, n, 1, DType::bf16},
                           .c_mn = c.view().data,
                           .c_row_stride = n,
                           .c_dtype = result,
                           .bias_n = bias.view().data,
                           .accumulate = accumulate});
      expect_close(c, expected, "widened");
    }
  }
}

}  // namespace
}  // namespace strata::testing
