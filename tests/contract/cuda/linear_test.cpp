// Matrix products of the CUDA kernels, which are a library's: of odd and of usual sizes, added to
// what there is, with a bias on the way, against plain loops in double or the reference; the same
// bits every time. On the emulator they are the reference's.

#include "contract/cuda/kernels_under_test.hpp"
#include "contract/kernels/linear_cases.hpp"

namespace strata::testing {
namespace {

class CudaLinear : public ::testing::Test {
 protected:
  void SetUp() override { cuda_ = make_kernels_under_test(); }
  Tensor random(DType dtype, Shape shape) { return random_normal(random_, dtype, shape); }
  Tensor output(const LinearCase& c, Shape shape) { return linear_output(random_, c, shape); }

  PhiloxStream random_{81, 0};
  std::unique_ptr<Kernels> cuda_;
};

// Tensor cores cut off, and do not round, what they add up in fp32.
void expect_product(const Tensor& actual, const Tensor& expected, const std::string& what) {
  expect_close(actual, expected, actual.view().dtype == DType::f32 ? 2e-5 : 0x1p-8, what);
}

Tensor with_bias(Tensor y_tn, const Tensor& bias_n) {
  for (std::int64_t i = 0; i < y_tn.count(); ++i)
    y_tn.set(i, y_tn.at(i) + bias_n.at(i % bias_n.count()));
  return y_tn;
}

TEST_F(CudaLinear, ForwardMultipliesByTransposedWeightsAndAddsTheBias) {
  for (const LinearCase& c : linear_cases()) {
    const Tensor x = random(c.storage, {c.t, c.k}), w = random(c.storage, {c.n, c.k}),
                 bias = random(c.storage, {c.n});
    const Tensor y = output(c, {c.t, c.n}), biased = copy_of(y);
    const Tensor expected = product(rows_of(x), columns_of(w), c.k, y, c.accumulate);
    cuda_->linear_forward(x, w, {}, y, c.accumulate, host_stream());
    cuda_->linear_forward(x, w, bias, biased, c.accumulate, host_stream());
    expect_product(y, expected, describe(c));
    expect_product(biased, with_bias(copy_of(expected), bias), describe(c) + ", bias");
  }
}

TEST_F(CudaLinear, BackwardInputMultipliesByWeights) {
  for (const LinearCase& c : linear_cases()) {
    const Tensor dy = random(c.storage, {c.t, c.n}), w = random(c.storage, {c.n, c.k});
    const Tensor dx = output(c, {c.t, c.k});
    const Tensor expected = product(rows_of(dy), rows_of(w), c.n, dx, c.accumulate);
    cuda_->linear_backward_input(dy, w, dx, c.accumulate, host_stream());
    expect_product(dx, expected, describe(c));
  }
}

TEST_F(CudaLinear, BackwardWeightSumsOverTokens) {
  for (const LinearCase& c : linear_cases()) {
    const Tensor dy = random(c.storage, {c.t, c.n}), x = random(c.storage, {c.t, c.k});
    const Tensor dw = output(c, {c.n, c.k});
    const Tensor expected = product(columns_of(dy), rows_of(x), c.t, dw, c.accumulate);
    cuda_->linear_backward_weight(dy, x, dw, c.accumulate, host_stream());
    expect_product(dw, expected, describe(c));
  }
}

TEST_F(CudaLinear, TakesOperandsThatStartAnywhere) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = placed(random(dtype, {24, 40}), 1), w = placed(random(dtype, {32, 40}), 3),
                 bias = placed(random(dtype, {32}), 1), y(dtype, {24, 32}, 5);
    const Tensor expected = product(rows_of(x), columns_of(w), 40, y, Accumulate::no);
    cuda_->linear_forward(x, w, bias, y, Accumulate::no, host_stream());
    expect_product(y, with_bias(copy_of(expected), bias), std::string(dtype_name(dtype)));
  }
}

// --- Sizes of a model

struct Layer {
  Tensor x, w, bias, dy, y, dx, dw;

  std::string bits() const { return y.bits() + dx.bits() + dw.bits(); }
};

Layer layer_of(PhiloxStream& random, std::int64_t t, std::int64_t k, std::int64_t n) {
  return {random_normal(random, DType::bf16, {t, k}),
          random_normal(random, DType::bf16, {n, k}),
          random_normal(random, DType::bf16, {n}),
          random_normal(random, DType::bf16, {t, n}),
          Tensor(DType::bf16, {t, n}),
          Tensor(DType::bf16, {t, k}),
          Tensor(DType::f32, {n, k})};
}

// The same operands with results of their own.
Layer again(const Layer& layer, DType storage, DType weight_gradient) {
  return {converted(layer.x, storage),
          converted(layer.w, storage),
          converted(layer.bias, storage),
          converted(layer.dy, storage),
          Tensor(storage, layer.y.view().shape),
          Tensor(storage, layer.dx.view().shape),
          Tensor(weight_gradient, layer.dw.view().shape)};
}

void run(Kernels& kernels, const Layer& layer) {
  kernels.linear_forward(layer.x, layer.w, layer.bias, layer.y, Accumulate::no, host_stream());
  kernels.linear_backward_input(layer.dy, layer.w, layer.dx, Accumulate::no, host_stream());
  kernels.linear_backward_weight(layer.dy, layer.x, layer.dw, Accumulate::no, host_stream());
}

TEST_F(CudaLinear, AgreesWithTheReferenceAtTheSizesOfAModel) {
  const std::int64_t t = is_on_gpu() ? 300 : 40, k = is_on_gpu() ? 640 : 64, n = k + k / 2;
  const Layer actual = layer_of(random_, t, k, n);
  const Layer expected = again(actual, DType::f64, DType::f64);
  run(*cuda_, actual);
  run(*make_ref_kernels(), expected);
  expect_product(actual.y, expected.y, "y");
  expect_product(actual.dx, expected.dx, "dx");
  expect_product(actual.dw, expected.dw, "dw");
}

TEST_F(CudaLinear, RepeatsItsBits) {
  const std::int64_t size = is_on_gpu() ? 2048 : 48;
  const Layer first = layer_of(random_, size / 2, size, size + 8);
  run(*cuda_, first);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Layer other = again(first, DType::bf16, DType::f32);
    run(*cuda_, other);
    EXPECT_TRUE(other.bits() == first.bits()) << repeat;
  }
}

}  // namespace
}  // namespace strata::testing
