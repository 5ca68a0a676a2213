// The products of a linear layer, put as a library takes them, are those of the reference; and the
// bias that a library cannot add is added.

#include "kernels/cuda/gemm_problem.hpp"

#include <gtest/gtest.h>

#include "contract/kernels/kernels_harness.hpp"
#include "kernels/cuda/bias.cuh"
#include "simt/emulator.hpp"

namespace strata::testing {
namespace {

double element(const Tensor& tensor, const cuda::GemmOperand& operand, std::int64_t row,
               std::int64_t column) {
  if (operand.transposed == cuda::Transposed::yes) std::swap(row, column);
  return tensor.at(column * operand.stride + row);
}

// What BLAS does, column by column.
void multiply(const cuda::GemmProblem& problem, const Tensor& a, const Tensor& b, Tensor& c) {
  for (std::int64_t row = 0; row < problem.m; ++row) {
    for (std::int64_t column = 0; column < problem.n; ++column) {
      const std::int64_t at = column * problem.c.stride + row;
      double sum = problem.accumulate == Accumulate::yes ? c.at(at) : 0;
      for (std::int64_t i = 0; i < problem.k; ++i)
        sum += element(a, problem.a, row, i) * element(b, problem.b, i, column);
      c.set(at, sum);
    }
  }
}

class GemmProblems : public ::testing::TestWithParam<Accumulate> {
 protected:
  Tensor random(Shape shape) { return random_normal(random_, DType::f64, shape); }
  PhiloxStream random_{81, 0};
  std::unique_ptr<Kernels> ref_ = make_ref_kernels();
  static constexpr std::int64_t t = 5, k = 7, n = 4;
};

TEST_P(GemmProblems, OfForwardAreXTimesWTransposed) {
  const Tensor x = random({t, k}), w = random({n, k}), start = random({t, n});
  Tensor actual = copy_of(start), expected = copy_of(start);
  multiply(cuda::linear_forward_problem(x, w, actual, GetParam()), w, x, actual);
  ref_->linear_forward(x, w, {}, expected, GetParam(), host_stream());
  expect_close(actual, expected, "y");
}

TEST_P(GemmProblems, OfInputGradientsAreDyTimesW) {
  const Tensor dy = random({t, n}), w = random({n, k}), start = random({t, k});
  Tensor actual = copy_of(start), expected = copy_of(start);
  multiply(cuda::linear_input_problem(dy, w, actual, GetParam()), w, dy, actual);
  ref_->linear_backward_input(dy, w, expected, GetParam(), host_stream());
  expect_close(actual, expected, "dx");
}

TEST_P(GemmProblems, OfWeightGradientsAreDyTransposedTimesX) {
  const Tensor dy = random({t, n}), x = random({t, k}), start = random({n, k});
  Tensor actual = copy_of(start), expected = copy_of(start);
  multiply(cuda::linear_weight_problem(dy, x, actual, GetParam()), x, dy, actual);
  ref_->linear_backward_weight(dy, x, expected, GetParam(), host_stream());
  expect_close(actual, expected, "dw");
}

INSTANTIATE_TEST_SUITE_P(Accumulation, GemmProblems,
                         ::testing::Values(Accumulate::no, Accumulate::yes));

TEST(AddBias, AddsOneRowToEach) {
  PhiloxStream random(82, 0);
  for (std::int64_t rows : {1, 3, 70}) {
    for (std::int64_t n : {1, 8, 13, 264}) {
      const Tensor y = random_normal(random, DType::f32, {rows, n}), start = copy_of(y),
                   bias = random_normal(random, DType::bf16, {n});
      simt::Emulator emulator(3);
      cuda::launch_add_bias(emulator, y, bias);
      for (std::int64_t i = 0; i < y.count(); ++i) {
        const float sum = start.view().as<float>()[i] + to_float(bias.view().as<bfloat16>()[i % n]);
        ASSERT_EQ(y.view().as<float>()[i], sum);
      }
    }
  }
}

}  // namespace
}  // namespace strata::testing
