// Against transformers' models in fp32: logits, token losses, loss and every parameter's gradient
// (make_goldens.py).

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <tuple>

#include "strata/checkpoint/hf_folder.hpp"
#include "strata/checkpoint/safetensors.hpp"
#include "support/read_tensor.hpp"
#include "support/source_dir.hpp"
#include "unit/model/logit_recorder.hpp"
#include "unit/model/tiny_llama.hpp"

namespace strata::test {
namespace {

using strata::testing::read_tensor;

const std::filesystem::path goldens_folder = source_dir() / "tests/golden/model";

std::vector<std::int32_t> read_integers(const SafetensorsReader& file, const std::string& name) {
  std::vector<std::int32_t> integers;
  for (float value : read_tensor(file, name)) integers.push_back(static_cast<std::int32_t>(value));
  return integers;
}

Rope rope_of(const std::string& type) {
  if (type == "linear") return Rope::linear;
  if (type == "llama3") return Rope::llama3;
  return type == "yarn" ? Rope::yarn : Rope::plain;
}

LlamaConfig config_of(const std::filesystem::path& folder) {
  const HfConfig source = read_hf_config(folder);
  LlamaConfig config;
  config.vocab_size = source.vocab_size;
  config.hidden_size = source.hidden_size;
  config.intermediate_size = source.intermediate_size;
  config.num_layers = source.num_hidden_layers;
  config.num_heads = source.num_attention_heads;
  config.num_key_value_heads = source.num_key_value_heads;
  config.head_dim = source.head_dim;
  config.rms_norm_epsilon = static_cast<float>(source.rms_norm_eps);
  config.tie_word_embeddings = source.tie_word_embeddings;
  config.attention_bias = source.attention_bias;
  config.attention_output_bias = source.attention_output_bias;
  config.mlp_bias = source.mlp_bias;
  config.query_key_norm = source.query_key_norm;
  config.rope = rope_of(source.rope_type);
  config.rope_theta = source.rope_theta;
  config.rope_factor = source.rope_factor;
  config.rope_low_freq_factor = source.rope_low_freq_factor;
  config.rope_high_freq_factor = source.rope_high_freq_factor;
  config.rope_original_max_positions = source.rope_original_max_positions;
  config.rope_beta_fast = source.rope_beta_fast;
  config.rope_beta_slow = source.rope_beta_slow;
  config.rope_truncates = source.rope_truncates;
  config.rope_attention_factor = source.rope_attention_factor;
  return config;
}

void load_weights(const std::filesystem::path& folder, ModelHarness& harness) {
  const SafetensorsReader file(folder / "model.safetensors");
  for (const BlockSpec& block : harness.model().blocks()) {
    for (const ParameterSpec& parameter : block.parameters) {
      harness.set_weight(parameter.name, read_tensor(file, parameter.name));
    }
  }
}

using Case = std::tuple<const char*, const char*>;  // golden, kernels

// One golden model, trained for one micro-batch.
class LlamaGolden : public ::testing::TestWithParam<Case> {
 protected:
  void train(DType dtype, std::int64_t chunk_tokens) {
    row_ = {read_integers(goldens_, "tokens"), read_integers(goldens_, "labels"),
            read_integers(goldens_, "document_start")};
    const auto num_tokens = static_cast<std::int64_t>(row_.tokens.size());
    harness_ = std::make_unique<ModelHarness>(
        config_of(folder_), ComputeShape{dtype, num_tokens, chunk_tokens}, recorder_);
    load_weights(folder_, *harness_);
    harness_->train(std::array{row_}, loss_scale_of(std::array{row_}));
  }

  double loss_error() {
    return relative_error(harness_->loss(), static_cast<double>(read_tensor(goldens_, "loss")[0]));
  }
  double logits_error() {
    return relative_error(recorder_.logits, read_tensor(goldens_, "logits"));
  }

  double token_losses_error() {
    std::vector<float> expected = read_tensor(goldens_, "token_losses");
    for (float& loss : expected) loss *= static_cast<float>(loss_scale_of(std::array{row_}));
    return relative_error(recorder_.losses, expected);
  }

  double gradients_error(double bound) {
    double worst = 0;
    for (const BlockSpec& block : harness_->model().blocks()) {
      for (const ParameterSpec& parameter : block.parameters) {
        const double error = relative_error(harness_->gradient(parameter.name),
                                            read_tensor(goldens_, "gradient." + parameter.name));
        EXPECT_LE(error, bound) << parameter.name;
        worst = std::max(worst, error);
      }
    }
    return worst;
  }

  void record(const char* what, double error) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.2e", error);
    RecordProperty(what, text.data());
  }

  // Every error within its bound, and in the test's report.
  void expect_within(double logits, double loss, double gradients) {
    EXPECT_LE(logits_error(), logits);
    EXPECT_LE(token_losses_error(), logits);
    EXPECT_LE(loss_error(), loss);
    record("logits", logits_error());
    record("token_losses", token_losses_error());
    record("loss", loss_error());
    record("gradients", gradients_error(gradients));
  }

  std::filesystem::path folder_ = goldens_folder / std::get<0>(GetParam());
  SafetensorsReader goldens_{folder_ / "goldens.safetensors"};
  std::unique_ptr<Kernels> kernels_ = make_kernels(std::get<1>(GetParam()));
  LogitRecorder recorder_{*kernels_};
  MicroBatch row_;
  std::unique_ptr<ModelHarness> harness_;
};

TEST_P(LlamaGolden, FollowsTransformersInF32) {
  train(DType::f32, 0);
  expect_within(1e-5, 1e-6, 1e-5);
}

TEST_P(LlamaGolden, FollowsTransformersInF32InChunks) {
  train(DType::f32, 11);
  expect_within(1e-5, 1e-6, 1e-5);
}

TEST_P(LlamaGolden, StaysNearTransformersF32InBf16) {
  train(DType::bf16, 11);
  expect_within(3e-2, 1e-3, 5e-2);
}

INSTANTIATE_TEST_SUITE_P(Cases, LlamaGolden,
                         ::testing::Combine(::testing::Values("tied", "untied_packed",
                                                              "bias_llama3", "qwen2", "qwen3",
                                                              "mistral_window", "llama_yarn"),
                                            ::testing::Values("ref", "cpu")),
                         [](const auto& param) {
                           return std::string(std::get<0>(param.param)) + "_" +
                                  std::get<1>(param.param);
                         });

LlamaConfig rope_config(std::int64_t head_dim, double theta) {
  LlamaConfig config;
  config.head_dim = head_dim;
  config.rope_theta = theta;
  return config;
}

// powf of one library and another differ in the last place.
void expect_frequencies(const LlamaConfig& config, const std::string& golden) {
  const SafetensorsReader file(goldens_folder / "rope.safetensors");
  const std::vector<float> expected = read_tensor(file, golden);
  const std::vector<float> actual = rope_inverse_frequencies(config);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i] / expected[i], 1, 2.5e-7) << golden << " pair " << i;
  }
}

TEST(RopeFrequencies, AreThoseOfTransformers) {
  expect_frequencies(rope_config(64, 1e5), "smollm2");
  expect_frequencies(rope_config(128, 1e4), "llama2");
}

TEST(RopeFrequencies, AreThoseOfTransformersScaledForLlama3) {
  LlamaConfig config = rope_config(128, 5e5);
  config.rope = Rope::llama3;
  expect_frequencies(config, "llama3.1");
  config.head_dim = 64;
  config.rope_factor = 32;
  expect_frequencies(config, "llama3.2");
}

TEST(RopeFrequencies, AreThoseOfTransformersScaledLinearly) {
  LlamaConfig config = rope_config(128, 1e4);
  config.rope = Rope::linear;
  config.rope_factor = 4;
  expect_frequencies(config, "linear");
}

TEST(RopeFrequencies, AreThoseOfTransformersScaledByYarn) {
  LlamaConfig config = rope_config(128, 1e6);
  config.rope = Rope::yarn;
  config.rope_factor = 4;
  config.rope_original_max_positions = 32768;
  expect_frequencies(config, "qwen3.yarn");
  config = rope_config(64, 150000);
  config.rope = Rope::yarn;
  config.rope_factor = 32;
  config.rope_original_max_positions = 4096;
  config.rope_truncates = false;
  expect_frequencies(config, "yarn.untruncated");
}

}  // namespace
}  // namespace strata::test
