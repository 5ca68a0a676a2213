#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <utility>

#include "unit/model/tiny_llama.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t run_tokens = 40;

// Of fp32 sums taken in another order. Gradients of keys are small differences of large terms.
constexpr double order_error = 4e-6;

LlamaConfig biased_llama() {
  LlamaConfig config = tiny_llama();
  config.attention_bias = config.mlp_bias = true;
  return config;
}

MicroBatch row_of(std::span<const std::int64_t> lengths, std::uint64_t stream = 0) {
  return packed_row(lengths, tiny_llama().vocab_size, stream);
}

MicroBatch mixed_row() { return row_of(std::array<std::int64_t, 3>{19, 1, 20}); }

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(a, b, [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

bool same_gradients(ModelHarness& a, const ModelHarness& b) {
  for (const BlockSpec& block : a.model().blocks()) {
    for (const ParameterSpec& parameter : block.parameters) {
      if (!same_bits(a.gradient(parameter.name), b.gradient(parameter.name))) return false;
    }
  }
  return true;
}

class LlamaRun : public ::testing::TestWithParam<const char*> {
 protected:
  ModelHarness make(const LlamaConfig& config, const ComputeShape& shape) {
    ModelHarness harness(config, shape, *kernels_);
    set_random_weights(harness);
    return harness;
  }
  ModelHarness make_f32(const LlamaConfig& config, std::int64_t tokens = run_tokens) {
    return make(config, {DType::f32, tokens, 0});
  }

  std::unique_ptr<Kernels> kernels_ = make_kernels(GetParam());
};

// The harness checks guards, NaN-filled outputs and scratch, and operands that are only read.
TEST_P(LlamaRun, WritesAllItsOutputsAndNothingElse) {
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const LlamaConfig& config : {tiny_llama(), tied_llama(), biased_llama(), tiny_qwen3()}) {
      for (std::int64_t chunk : {0, 13}) {
        ModelHarness harness = make(config, {dtype, run_tokens, chunk});
        const std::array rows{mixed_row()};
        harness.train(rows, loss_scale_of(rows));
        harness.score(rows, loss_scale_of(rows));
      }
    }
  }
}

TEST_P(LlamaRun, GivesTheSameLossInOneMicroBatchAndInEight) {
  const MicroBatch row = row_of(std::array<std::int64_t, 8>{5, 5, 5, 5, 5, 5, 5, 5});
  std::vector<MicroBatch> parts;
  for (std::int64_t i = 0; i < 8; ++i) parts.push_back(part_of(row, 5 * i, 5));
  ModelHarness whole = make_f32(tied_llama());
  ModelHarness split = make_f32(tied_llama(), 5);
  const std::array rows{row};
  whole.train(rows, loss_scale_of(rows));
  split.train(parts, loss_scale_of(rows));
  EXPECT_LE(relative_error(split.loss(), whole.loss()), 1e-6);
  const WorstGradient worst = worst_gradient(split, whole);
  EXPECT_LE(worst.error, order_error) << worst.name;
}

TEST_P(LlamaRun, GivesTheSameLossPackedAndApart) {
  const MicroBatch packed = row_of(std::array<std::int64_t, 2>{27, 13});
  const std::array rows{packed};
  const double scale = loss_scale_of(rows);
  ModelHarness together = make_f32(tiny_llama());
  together.train(rows, scale);
  ModelHarness first = make_f32(tiny_llama(), 27), second = make_f32(tiny_llama(), 13);
  first.train(std::array{part_of(packed, 0, 27)}, scale);
  second.train(std::array{part_of(packed, 27, 13)}, scale);
  EXPECT_LE(relative_error(first.loss() + second.loss(), together.loss()), 1e-6);
  const std::string name = "model.layers.0.self_attn.k_proj.weight";
  std::vector<float> sum = first.gradient(name);
  const std::vector<float> rest = second.gradient(name);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += rest[i];
  EXPECT_LE(relative_error(sum, together.gradient(name)), order_error);
}

TEST_P(LlamaRun, GivesTheSameLossWhateverTheChunk) {
  const std::array rows{mixed_row()};
  for (const auto& [dtype, bound] : {std::pair{DType::f32, 1e-6}, {DType::bf16, 1e-2}}) {
    ModelHarness whole = make(tied_llama(), {dtype, run_tokens, run_tokens});
    whole.train(rows, loss_scale_of(rows));
    for (std::int64_t chunk : {1, 7, 20, 39}) {
      ModelHarness chunked = make(tied_llama(), {dtype, run_tokens, chunk});
      chunked.train(rows, loss_scale_of(rows));
      EXPECT_LE(relative_error(chunked.loss(), whole.loss()), 1e-6) << chunk;
      const WorstGradient worst = worst_gradient(chunked, whole);
      EXPECT_LE(worst.error, bound) << worst.name << " in chunks of " << chunk;
    }
  }
}

TEST_P(LlamaRun, ScoresWhatItTrains) {
  const std::array rows{mixed_row(), row_of(std::array<std::int64_t, 1>{run_tokens}, 1)};
  for (DType dtype : {DType::f32, DType::bf16}) {
    ModelHarness harness = make(tied_llama(), {dtype, run_tokens, 16});
    harness.train(rows, loss_scale_of(rows));
    const double trained = harness.loss();
    harness.score(rows, loss_scale_of(rows));
    EXPECT_EQ(harness.loss(), trained);
  }
}

TEST_P(LlamaRun, TrainsATiedModelLikeAnUntiedOneOfEqualWeights) {
  const std::array rows{mixed_row()};
  ModelHarness tied = make_f32(tied_llama()), untied = make_f32(tiny_llama());
  const std::vector<float> table = random_values(53 * 24, 0, 99);
  tied.set_weight("model.embed_tokens.weight", table);
  untied.set_weight("model.embed_tokens.weight", table);
  untied.set_weight("lm_head.weight", table);
  tied.train(rows, loss_scale_of(rows));
  untied.train(rows, loss_scale_of(rows));
  EXPECT_EQ(tied.loss(), untied.loss());
  std::vector<float> sum = untied.gradient("model.embed_tokens.weight");
  const std::vector<float> head = untied.gradient("lm_head.weight");
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += head[i];
  EXPECT_LE(relative_error(tied.gradient("model.embed_tokens.weight"), sum), 1e-6);
  EXPECT_TRUE(same_bits(tied.gradient("model.norm.weight"), untied.gradient("model.norm.weight")));
}

TEST_P(LlamaRun, RepeatsItsBits) {
  const std::array rows{mixed_row()};
  for (DType dtype : {DType::f32, DType::bf16}) {
    ModelHarness first = make(biased_llama(), {dtype, run_tokens, 16});
    ModelHarness second = make(biased_llama(), {dtype, run_tokens, 16});
    first.train(rows, loss_scale_of(rows));
    second.train(rows, loss_scale_of(rows));
    second.train(rows, loss_scale_of(rows));
    EXPECT_EQ(first.loss(), second.loss());
    EXPECT_EQ(worst_gradient(second, first).error, 0);
  }
}

// The harness also checks that backward only reads what forward saved.
TEST_P(LlamaRun, GivesTheSameBitsFromKeptLayersAsFromRecomputedOnes) {
  const std::array rows{mixed_row(), row_of(std::array<std::int64_t, 1>{run_tokens}, 1)};
  for (DType dtype : {DType::f32, DType::bf16}) {
    for (const LlamaConfig& config : {tiny_llama(), tied_llama(), biased_llama(), tiny_qwen3()}) {
      ModelHarness recomputed = make(config, {dtype, run_tokens, 16});
      recomputed.train(rows, loss_scale_of(rows));
      for (int kept : {1, 2}) {
        ModelHarness keeping = make(config, {dtype, run_tokens, 16});
        keeping.train(rows, loss_scale_of(rows), {.kept_layers = kept});
        EXPECT_EQ(keeping.loss(), recomputed.loss()) << kept;
        EXPECT_TRUE(same_gradients(keeping, recomputed)) << kept;
      }
    }
  }
}

TEST_P(LlamaRun, LearnsNothingFromTokensThatAreNotTrained) {
  MicroBatch row = mixed_row();
  std::ranges::fill(row.labels, -1);
  ModelHarness harness = make_f32(tied_llama());
  harness.train(std::array{row}, 1.0);
  EXPECT_EQ(harness.loss(), 0);
  for (const BlockSpec& block : harness.model().blocks()) {
    for (const ParameterSpec& parameter : block.parameters) {
      for (float value : harness.gradient(parameter.name)) ASSERT_EQ(value, 0) << parameter.name;
    }
  }
}

TEST_P(LlamaRun, ScalesLossAndGradientsByTheLossScale) {
  const std::array rows{mixed_row()};
  ModelHarness once = make_f32(tiny_llama()), half = make_f32(tiny_llama());
  once.train(rows, 0.25);
  half.train(rows, 0.125);
  EXPECT_EQ(once.loss(), 2 * half.loss());
  std::vector<float> doubled = half.gradient("lm_head.weight");
  for (float& value : doubled) value *= 2;
  EXPECT_TRUE(same_bits(once.gradient("lm_head.weight"), doubled));
}

// A step along one tensor's gradient raises the loss by the step times the gradient's square.
TEST_P(LlamaRun, HasTheGradientOfItsOwnLoss) {
  const std::array rows{mixed_row()};
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  const std::vector<float> weights = random_values(32 * 24, 0, 1234);
  ModelHarness harness = make_f32(biased_llama());
  const auto loss_along = [&](const std::vector<float>& direction, float step) {
    std::vector<float> moved = weights;
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += step * direction[i];
    harness.set_weight(name, moved);
    harness.train(rows, loss_scale_of(rows));
    return harness.loss();
  };
  loss_along(weights, 0);
  const std::vector<float> gradient = harness.gradient(name);
  double square = 0;
  for (float value : gradient) square += static_cast<double>(value) * static_cast<double>(value);
  const float step = 0.01f / static_cast<float>(std::sqrt(square));
  const double slope = (loss_along(gradient, step) - loss_along(gradient, -step)) / (2.0 * step);
  EXPECT_NEAR(slope / square, 1, 2e-3);
}

INSTANTIATE_TEST_SUITE_P(Kernels, LlamaRun, ::testing::Values("ref", "cpu"),
                         [](const auto& param) { return std::string(param.param); });

}  // namespace
}  // namespace strata::test
