#include "strata/checkpoint/random_model.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "checkpoint_testing.hpp"
#include "strata/checkpoint/llama_tensors.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::vector<float> all_values(const std::filesystem::path& folder) {
  std::vector<float> all;
  const auto tensors = llama_tensors(read_hf_config(folder));
  const HfWeights weights(folder, tensors);
  for (const ExpectedTensor& tensor : tensors) {
    std::vector<float> values(static_cast<std::size_t>(element_count(tensor)));
    weights.read_f32(tensor.name, 0, values);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

RandomModelOptions tiny_options() { return {.config = random_model_preset("tiny")}; }

TEST(RandomModel, WritesAFolderThatOpens) {
  const TempFolder folder;
  make_random_model(folder / "model", tiny_options());
  EXPECT_THAT(names_in(folder / "model"),
              ::testing::ElementsAre("config.json", "model.safetensors"));
  EXPECT_THAT(names_in(folder.path()), ::testing::ElementsAre("model"));
  const HfConfig config = read_hf_config(folder / "model");
  EXPECT_EQ(config.dtype, "bfloat16");
  EXPECT_EQ(std::ssize(all_values(folder / "model")), num_parameters(config));
}

TEST(RandomModel, HasTheSameValuesWhateverTheShardsAndThreads) {
  const TempFolder folder;
  RandomModelOptions options = tiny_options();
  options.threads = 1;
  make_random_model(folder / "whole", options);
  options.threads = 5;
  options.shard_bytes = 30'000;
  make_random_model(folder / "cut", options);
  EXPECT_GT(names_in(folder / "cut").size(), 4u);
  EXPECT_EQ(all_values(folder / "whole"), all_values(folder / "cut"));
}

TEST(RandomModel, HasTheSameValuesInEveryDtypeUpToRounding) {
  const TempFolder folder;
  RandomModelOptions options = tiny_options();
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    options.dtype = dtype;
    make_random_model(folder / std::string(dtype_name(dtype)), options);
  }
  const auto exact = all_values(folder / "f32"), bf16 = all_values(folder / "bf16"),
             f16 = all_values(folder / "f16");
  for (std::size_t i = 0; i < exact.size(); ++i) {
    ASSERT_EQ(bf16[i], to_float(to_bfloat16(exact[i])));
    ASSERT_NEAR(f16[i], exact[i], std::abs(exact[i]) * 0x1p-11f + 0x1p-25f);
  }
}

TEST(RandomModel, FillsAnyRangeAsItFillsTheWhole) {
  const HfConfig config = random_model_preset("tiny");
  std::vector<float> whole(1000), part(37);
  fill_random_weights(7, config, "w", 0, whole);
  for (const std::size_t first :
       {std::size_t{0}, std::size_t{1}, std::size_t{510}, std::size_t{963}}) {
    fill_random_weights(7, config, "w", static_cast<std::int64_t>(first), part);
    EXPECT_TRUE(
        std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(first)));
  }
}

TEST(RandomModel, DiffersBetweenSeedsAndTensors) {
  const HfConfig config = random_model_preset("tiny");
  std::vector<float> a(64), b(64), c(64);
  fill_random_weights(1, config, "w", 0, a);
  fill_random_weights(2, config, "w", 0, b);
  fill_random_weights(1, config, "v", 0, c);
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
}

TEST(RandomModel, DrawsNormalsOfTheInitializerRange) {
  HfConfig config = random_model_preset("tiny");
  config.initializer_range = 0.5;
  std::vector<float> values(200'000);
  fill_random_weights(3, config, "w", 0, values);
  double sum = 0, squares = 0, fourth = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
    fourth += value * value * value * value;
  }
  const double count = static_cast<double>(values.size()), variance = squares / count;
  EXPECT_NEAR(sum / count, 0, 0.005);
  EXPECT_NEAR(variance, 0.25, 0.005);
  EXPECT_NEAR(fourth / count / (variance * variance), 3, 0.1);  // a normal's kurtosis
}

TEST(RandomModel, StartsNormsAtOneAndBiasesAtZero) {
  const TempFolder folder;
  RandomModelOptions options = tiny_options();
  options.config.attention_bias = options.config.mlp_bias = true;
  make_random_model(folder / "model", options);
  const auto tensors = llama_tensors(read_hf_config(folder / "model"));
  const HfWeights weights(folder / "model", tensors);
  std::vector<float> values(64);
  weights.read_f32("model.layers.1.input_layernorm.weight", 0, values);
  EXPECT_EQ(values, std::vector<float>(64, 1.0f));
  weights.read_f32("model.layers.1.self_attn.o_proj.bias", 0, values);
  EXPECT_EQ(values, std::vector<float>(64, 0.0f));
  weights.read_f32("model.layers.1.mlp.gate_proj.bias", 0, values);
  EXPECT_EQ(values, std::vector<float>(64, 0.0f));
}

TEST(RandomModel, StartsNormsOfHeadsAtOne) {
  const TempFolder folder;
  RandomModelOptions options = tiny_options();
  options.config.query_key_norm = true;
  make_random_model(folder / "model", options);
  const HfConfig config = read_hf_config(folder / "model");
  EXPECT_EQ(config.architecture, "Qwen3ForCausalLM");
  const HfWeights weights(folder / "model", llama_tensors(config));
  for (const char* name : {"q_norm", "k_norm"}) {
    std::vector<float> values(16);
    weights.read_f32(std::string("model.layers.2.self_attn.") + name + ".weight", 0, values);
    EXPECT_EQ(values, std::vector<float>(16, 1.0f)) << name;
  }
}

TEST(RandomModel, OmitsTheTiedHead) {
  const TempFolder folder;
  RandomModelOptions options = tiny_options();
  options.config.tie_word_embeddings = true;
  make_random_model(folder / "model", options);
  EXPECT_EQ(SafetensorsReader(folder / "model" / "model.safetensors").find("lm_head.weight"),
            nullptr);
}

TEST(RandomModel, WritesAnIndexWithTheTotalSize) {
  const TempFolder folder;
  RandomModelOptions options = tiny_options();
  options.shard_bytes = 100'000;
  make_random_model(folder / "model", options);
  const json index = json::parse(read_bytes(folder / "model" / "model.safetensors.index.json"));
  const auto count = num_parameters(options.config);
  EXPECT_EQ(index["metadata"]["total_size"], count * 2);
  const std::string first = index["weight_map"]["model.embed_tokens.weight"];
  EXPECT_TRUE(first.starts_with("model-00001-of-0000"));
  for (const std::string& name : names_in(folder / "model")) {
    EXPECT_LT(std::filesystem::file_size(folder / "model" / name), 110'000u);
  }
}

TEST(RandomModel, WritesOnlyTheConfigWhenShapeOnly) {
  const TempFolder folder;
  make_random_model(folder / "70b",
                    {.config = random_model_preset("llama3-70b"), .shape_only = true});
  EXPECT_THAT(names_in(folder / "70b"), ::testing::ElementsAre("config.json"));
  EXPECT_EQ(num_parameters(read_hf_config(folder / "70b")), 70'553'706'496);
}

TEST(RandomModel, RefusesWhatCannotBe) {
  const TempFolder folder;
  RandomModelOptions options = tiny_options();
  options.config.num_key_value_heads = 3;
  EXPECT_THAT(error_of<ConfigError>([&] { make_random_model(folder / "a", options); }),
              HasSubstr("multiple"));
  options = tiny_options();
  options.dtype = DType::i32;
  EXPECT_THAT(error_of<ConfigError>([&] { make_random_model(folder / "a", options); }),
              HasSubstr("i32"));
  EXPECT_THAT(error_of<ConfigError>([] { random_model_preset("llama9"); }), HasSubstr("tiny, 51m"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(RandomModel, RefusesMoreBytesThanAreFreeBeforeWriting) {
  const TempFolder folder;
  RandomModelOptions options{.config = random_model_preset("llama3-70b"), .dtype = DType::f32};
  options.config.num_hidden_layers = 50'000;  // some 170 TB
  const auto text = error_of<SystemError>([&] { make_random_model(folder / "a", options); });
  EXPECT_THAT(text, HasSubstr("bytes) are free"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace strata
