#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strata/core/error.hpp"
#include "unit/model/tiny_llama.hpp"

namespace strata::test {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> names(const BlockSpec& block) {
  std::vector<std::string> found;
  for (const ParameterSpec& parameter : block.parameters) found.push_back(parameter.name);
  return found;
}

std::unique_ptr<Model> make_model(const LlamaConfig& config, Kernels& kernels) {
  return make_llama(config, {DType::f32, 16, 0}, kernels);
}

TEST(LlamaBlocks, AreEmbeddingLayersAndHead) {
  const auto kernels = make_ref_kernels();
  const auto model = make_model(tiny_llama(), *kernels);
  ASSERT_EQ(model->blocks().size(), 4u);
  EXPECT_EQ(model->blocks()[0].name, "embedding");
  EXPECT_EQ(model->blocks()[1].name, "layers.0");
  EXPECT_EQ(model->blocks()[2].name, "layers.1");
  EXPECT_EQ(model->blocks()[3].name, "head");
}

TEST(LlamaBlocks, NameTheirParametersAsHuggingFaceDoes) {
  const auto kernels = make_ref_kernels();
  const auto model = make_model(tiny_llama(), *kernels);
  EXPECT_THAT(names(model->blocks()[0]), ElementsAre("model.embed_tokens.weight"));
  EXPECT_THAT(
      names(model->blocks()[2]),
      ElementsAre(
          "model.layers.1.input_layernorm.weight", "model.layers.1.self_attn.q_proj.weight",
          "model.layers.1.self_attn.k_proj.weight", "model.layers.1.self_attn.v_proj.weight",
          "model.layers.1.self_attn.o_proj.weight",
          "model.layers.1.post_attention_layernorm.weight", "model.layers.1.mlp.gate_proj.weight",
          "model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.down_proj.weight"));
  EXPECT_THAT(names(model->blocks()[3]), ElementsAre("model.norm.weight", "lm_head.weight"));
}

TEST(LlamaBlocks, HaveABiasBesideEveryProjectionThatTheConfigGivesOne) {
  const auto kernels = make_ref_kernels();
  LlamaConfig config = tiny_llama();
  config.attention_bias = config.mlp_bias = true;
  const auto model = make_model(config, *kernels);
  for (const char* projection : {"self_attn.q", "self_attn.k", "self_attn.v", "self_attn.o",
                                 "mlp.gate", "mlp.up", "mlp.down"}) {
    const std::string name = std::string("model.layers.0.") + projection + "_proj.bias";
    EXPECT_THAT(names(model->blocks()[1]), ::testing::Contains(name));
  }
}

TEST(LlamaBlocks, LeaveOutTheProjectionOfATiedHead) {
  const auto kernels = make_ref_kernels();
  LlamaConfig config = tiny_llama();
  config.tie_word_embeddings = true;
  EXPECT_THAT(names(make_model(config, *kernels)->blocks()[3]), ElementsAre("model.norm.weight"));
}

TEST(LlamaBlocks, ShapeProjectionsByHeadsAndAnExplicitHeadDim) {
  const auto kernels = make_ref_kernels();
  const auto model = make_model(tiny_llama(), *kernels);
  const std::vector<ParameterSpec>& layer = model->blocks()[1].parameters;
  EXPECT_EQ(layer[1].shape, (Shape{32, 24}));  // q: 4 heads of 8
  EXPECT_EQ(layer[2].shape, (Shape{16, 24}));  // k: 2 heads of 8
  EXPECT_EQ(layer[4].shape, (Shape{24, 32}));  // o
  EXPECT_EQ(layer[8].shape, (Shape{24, 36}));  // down
}

TEST(LlamaBlocks, AlignParametersTo64ElementsWithoutOverlap) {
  const auto kernels = make_ref_kernels();
  LlamaConfig config = tiny_llama();
  config.attention_bias = true;
  const auto model = make_model(config, *kernels);
  for (const BlockSpec& block : model->blocks()) {
    std::int64_t end = 0;
    for (const ParameterSpec& parameter : block.parameters) {
      EXPECT_EQ(parameter.offset % 64, 0) << parameter.name;
      EXPECT_GE(parameter.offset, end) << parameter.name;
      EXPECT_LT(parameter.offset, end + 64) << parameter.name;
      end = parameter.offset + parameter.count();
    }
    EXPECT_GE(block.count, end) << block.name;
    EXPECT_LT(block.count, end + 64) << block.name;
  }
}

TEST(LlamaBlocks, ExemptNormsAndBiasesFromDecay) {
  const auto kernels = make_ref_kernels();
  LlamaConfig config = tiny_llama();
  config.attention_bias = config.mlp_bias = true;
  const auto model = make_model(config, *kernels);
  for (const BlockSpec& block : model->blocks()) {
    for (const ParameterSpec& parameter : block.parameters) {
      EXPECT_EQ(parameter.decays, parameter.shape.rank == 2) << parameter.name;
    }
  }
}

TEST(LlamaBlocks, CountParametersWithoutAlignmentGaps) {
  const auto kernels = make_ref_kernels();
  const std::int64_t layer = 24 + (32 + 16 + 16) * 24 + 24 * 32 + 24 + 3 * 24 * 36;
  const auto model = make_model(tiny_llama(), *kernels);
  EXPECT_EQ(model->num_parameters(), 53 * 24 + 2 * layer + 24 + 53 * 24);
}

TEST(Llama, RefusesHeadsThatShareNoKeysEvenly) {
  const auto kernels = make_ref_kernels();
  LlamaConfig config = tiny_llama();
  config.num_key_value_heads = 3;
  EXPECT_THROW(make_model(config, *kernels), ConfigError);
}

TEST(Llama, RefusesAnOddHeadDim) {
  const auto kernels = make_ref_kernels();
  LlamaConfig config = tiny_llama();
  config.head_dim = 7;
  EXPECT_THROW(make_model(config, *kernels), ConfigError);
}

TEST(Llama, RefusesAMissingSizeByName) {
  const auto kernels = make_ref_kernels();
  LlamaConfig config = tiny_llama();
  config.intermediate_size = 0;
  try {
    make_model(config, *kernels);
    FAIL() << "accepted an intermediate_size of 0";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("intermediate_size"));
  }
}

TEST(Llama, RefusesToComputeInF16) {
  const auto kernels = make_ref_kernels();
  EXPECT_THROW(make_llama(tiny_llama(), {DType::f16, 16, 0}, *kernels), ConfigError);
}

}  // namespace
}  // namespace strata::test
