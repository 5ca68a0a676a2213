// A small model's segments on the CUDA kernels against the same segments on the reference's, both
// in the same storage. The harness holds every segment to its memory as well.

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "contract/cuda/kernels_under_test.hpp"
#include "unit/model/tiny_llama.hpp"

namespace strata::testing {
namespace {

using test::MicroBatch;
using test::ModelHarness;

// Heads for tensor cores in bf16, normed; tied and with biases, so that every op of the model takes
// part.
LlamaConfig small_llama() {
  LlamaConfig config = test::tiny_llama();
  config.vocab_size = is_on_gpu() ? 503 : 101;
  config.hidden_size = is_on_gpu() ? 256 : 64;
  config.intermediate_size = 2 * config.hidden_size + 8;
  config.num_heads = is_on_gpu() ? 4 : 2;
  config.num_key_value_heads = config.num_heads / 2;
  config.head_dim = 64;
  config.max_positions = 1024;
  config.tie_word_embeddings = config.attention_bias = config.query_key_norm = true;
  return config;
}

MicroBatch small_row() {
  const std::int64_t unit = is_on_gpu() ? 80 : 12;
  return test::packed_row(std::array{unit, std::int64_t{1}, 2 * unit + 3}, small_llama().vocab_size,
                          0);
}

ModelHarness trained(Kernels& kernels, DType dtype) {
  const std::array rows{small_row()};
  const auto tokens = static_cast<std::int64_t>(rows[0].tokens.size());
  ModelHarness harness(small_llama(), {dtype, tokens, tokens / 3}, kernels);
  test::set_random_weights(harness);
  harness.train(rows, test::loss_scale_of(rows));
  return harness;
}

// Of the parameter whose gradient is the furthest off, as a whole. A key's bias moves all scores of
// a query nearly alike, so its gradient is mostly rounding, and is left out.
test::WorstGradient worst_of(ModelHarness& actual, const ModelHarness& expected) {
  test::WorstGradient worst;
  for (const BlockSpec& block : actual.model().blocks()) {
    for (const ParameterSpec& parameter : block.parameters) {
      if (parameter.name.ends_with("k_proj.bias")) continue;
      const std::vector<float> a = actual.gradient(parameter.name),
                               b = expected.gradient(parameter.name);
      double difference = 0, size = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
        size += std::pow(static_cast<double>(b[i]), 2);
      }
      const double error = std::sqrt(difference / size);
      if (!(error <= worst.error)) worst = {parameter.name, error};
    }
  }
  return worst;
}

// Relative ones, several times what the CPU's kernels are off by at the sizes for a GPU: the
// model's scores are large and its attention sharp, so that roundings grow.
struct StorageBounds {
  DType dtype;
  double loss, gradient;
};

class CudaLlama : public ::testing::TestWithParam<StorageBounds> {};

TEST_P(CudaLlama, HasTheLossAndTheGradientsOfTheReference) {
  ModelHarness actual = trained(*make_kernels_under_test(), GetParam().dtype);
  const ModelHarness expected = trained(*make_ref_kernels(), GetParam().dtype);
  EXPECT_LE(test::relative_error(actual.loss(), expected.loss()), GetParam().loss);
  const test::WorstGradient worst = worst_of(actual, expected);
  EXPECT_LE(worst.error, GetParam().gradient) << worst.name;
}

TEST_P(CudaLlama, RepeatsItsBits) {
  const ModelHarness first = trained(*make_kernels_under_test(2), GetParam().dtype);
  ModelHarness second = trained(*make_kernels_under_test(3), GetParam().dtype);
  EXPECT_EQ(first.loss(), second.loss());
  EXPECT_EQ(test::worst_gradient(second, first).error, 0);
}

INSTANTIATE_TEST_SUITE_P(Storages, CudaLlama,
                         ::testing::Values(StorageBounds{DType::f32, 5e-6, 2e-4},
                                           StorageBounds{DType::bf16, 2e-3, 0.15}),
                         [](const auto& test) {
                           return std::string(dtype_name(test.param.dtype));
                         });

}  // namespace
}  // namespace strata::testing
