#include <nlohmann/json.hpp>

#include "checkpoint_testing.hpp"
#include "strata/checkpoint/hf_folder.hpp"
#include "strata/checkpoint/llama_tensors.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json minimal() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"vocab_size", 100},
          {"hidden_size", 64},
          {"intermediate_size", 96},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4}};
}

json with(const json& changes) {
  json config = minimal();
  config.update(changes);
  return config;
}

HfConfig parse(const json& changes) { return parse_hf_config(with(changes).dump(), "config.json"); }

template <typename Expected>
std::string complaint(const json& changes) {
  return error_of<Expected>([&] { parse(changes); });
}

TEST(HfConfig, TakesTransformersDefaultsForWhatIsAbsent) {
  const HfConfig config = parse(json::object());
  EXPECT_EQ(config.num_key_value_heads, 4);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.max_position_embeddings, 2048);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.rope_theta, 10000);
  EXPECT_EQ(config.rope_type, "default");
  EXPECT_FALSE(config.tie_word_embeddings || config.attention_bias || config.mlp_bias);
}

TEST(HfConfig, ReadsWhatIsStated) {
  const HfConfig config = parse({{"num_key_value_heads", 2},
                                 {"head_dim", 32},
                                 {"max_position_embeddings", 77},
                                 {"rms_norm_eps", 1e-5},
                                 {"tie_word_embeddings", true},
                                 {"attention_bias", true},
                                 {"mlp_bias", true},
                                 {"initializer_range", 0.1},
                                 {"rope_theta", 5e5}});
  EXPECT_EQ(config.num_key_value_heads, 2);
  EXPECT_EQ(config.head_dim, 32);
  EXPECT_EQ(config.max_position_embeddings, 77);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_TRUE(config.tie_word_embeddings && config.attention_bias && config.mlp_bias);
  EXPECT_EQ(config.initializer_range, 0.1);
  EXPECT_EQ(config.rope_theta, 5e5);
}

TEST(HfConfig, TreatsNullAsAbsent) {
  const HfConfig config = parse({{"num_key_value_heads", nullptr}, {"head_dim", nullptr}});
  EXPECT_EQ(config.num_key_value_heads, 4);
  EXPECT_EQ(config.head_dim, 16);
}

TEST(HfConfig, ReadsOneTokenIdOrAList) {
  EXPECT_THAT(parse({{"eos_token_id", 2}}).eos_token_ids, ElementsAre(2));
  EXPECT_THAT(parse({{"eos_token_id", {5, 6, 7}}}).eos_token_ids, ElementsAre(5, 6, 7));
  EXPECT_TRUE(parse({{"eos_token_id", nullptr}}).eos_token_ids.empty());
  EXPECT_THAT(complaint<FormatError>({{"eos_token_id", "</s>"}}), HasSubstr("eos_token_id"));
  EXPECT_THAT(complaint<FormatError>({{"eos_token_id", {1, 2.5}}}), HasSubstr("eos_token_id"));
}

TEST(HfConfig, ReadsEitherDtypeSpellingUnlessTheyDisagree) {
  EXPECT_EQ(parse({{"torch_dtype", "float16"}}).dtype, "float16");
  EXPECT_EQ(parse({{"dtype", "bfloat16"}}).dtype, "bfloat16");
  EXPECT_EQ(parse({{"dtype", "float32"}, {"torch_dtype", "float32"}}).dtype, "float32");
  EXPECT_THAT(complaint<ConfigError>({{"dtype", "float32"}, {"torch_dtype", "float16"}}),
              HasSubstr("disagree"));
}

TEST(HfConfig, RefusesOtherClassesByName) {
  for (const char* name :
       {"Qwen3MoeForCausalLM", "GemmaForCausalLM", "LlamaForSequenceClassification"}) {
    EXPECT_THAT(complaint<ConfigError>({{"architectures", {name}}}), HasSubstr(name));
  }
  EXPECT_THAT(complaint<ConfigError>({{"architectures", {"Qwen3MoeForCausalLM"}}}),
              HasSubstr("experts"));
}

json of_class(const char* architecture, const json& changes) {
  json config = {{"architectures", {architecture}},
                 {"num_key_value_heads", 2},
                 {"max_position_embeddings", 64}};
  config.update(changes);
  return config;
}

TEST(HfConfig, GivesQwen2BiasesOfQueryKeyAndValueAlone) {
  const HfConfig config = parse(of_class("Qwen2ForCausalLM", {{"sliding_window", 4096}}));
  EXPECT_EQ(config.architecture, "Qwen2ForCausalLM");
  EXPECT_TRUE(config.attention_bias);
  EXPECT_FALSE(config.attention_output_bias || config.mlp_bias);
  std::vector<std::string> biases;
  for (const ExpectedTensor& tensor : llama_tensors(config))
    if (tensor.name.starts_with("model.layers.1.") && tensor.name.ends_with(".bias"))
      biases.push_back(tensor.name.substr(15));
  EXPECT_THAT(biases, ElementsAre("self_attn.q_proj.bias", "self_attn.k_proj.bias",
                                  "self_attn.v_proj.bias"));
}

TEST(HfConfig, GivesQwen3NormsOfTheHeadsOfQueryAndKey) {
  const json stated = of_class("Qwen3ForCausalLM", {{"head_dim", 32}, {"max_window_layers", 2}});
  const HfConfig config = parse(stated);
  EXPECT_EQ(config.architecture, "Qwen3ForCausalLM");
  EXPECT_EQ(parse({{"architectures", nullptr},
                   {"model_type", "qwen3"},
                   {"num_key_value_heads", 2},
                   {"max_position_embeddings", 64},
                   {"head_dim", 32}})
                .architecture,
            "Qwen3ForCausalLM");
  EXPECT_FALSE(config.attention_bias || config.mlp_bias || config.tie_word_embeddings);
  EXPECT_EQ(config.sliding_window, 0);
  std::vector<std::string> of_layer;
  for (const ExpectedTensor& tensor : llama_tensors(config)) {
    if (!tensor.name.starts_with("model.layers.1.self_attn.")) continue;
    of_layer.push_back(tensor.name.substr(25));
    if (tensor.name.ends_with("_norm.weight")) {
      EXPECT_THAT(tensor.shape, ElementsAre(32));
    }
  }
  EXPECT_THAT(of_layer, ElementsAre("q_proj.weight", "k_proj.weight", "v_proj.weight",
                                    "o_proj.weight", "q_norm.weight", "k_norm.weight"));
  EXPECT_FALSE(parse(json::object()).query_key_norm);
}

TEST(HfConfig, TakesQwen3sAttentionBiasesAsStatedAndRefusesItsMlps) {
  json config = of_class("Qwen3ForCausalLM", {{"head_dim", 32}, {"attention_bias", true}});
  EXPECT_TRUE(parse(config).attention_bias && parse(config).attention_output_bias);
  config["mlp_bias"] = true;
  EXPECT_THAT(complaint<ConfigError>(config), HasSubstr("mlp_bias"));
  EXPECT_THAT(complaint<ConfigError>(of_class("Qwen3ForCausalLM", json::object())),
              HasSubstr("head_dim"));
}

TEST(HfConfig, ReadsMistralWithoutAWindow) {
  const HfConfig config = parse(of_class("MistralForCausalLM", {{"sliding_window", nullptr}}));
  EXPECT_EQ(config.architecture, "MistralForCausalLM");
  EXPECT_FALSE(config.attention_bias || config.mlp_bias);
}

TEST(HfConfig, ReadsWindowsAsEachClassMeansThem) {
  const auto window = [](const char* name, const json& changes) {
    return parse(of_class(name, changes)).sliding_window;
  };
  EXPECT_EQ(window("MistralForCausalLM", {{"sliding_window", 9}}), 9);
  EXPECT_EQ(window("MistralForCausalLM", {{"sliding_window", 9}, {"use_sliding_window", false}}),
            9);
  EXPECT_EQ(window("MistralForCausalLM", json::object()), 4096) << "as transformers has it";
  EXPECT_EQ(window("MistralForCausalLM", {{"sliding_window", nullptr}}), 0);
  EXPECT_EQ(window("Qwen2ForCausalLM", {{"sliding_window", 9}, {"use_sliding_window", true}}), 9);
  EXPECT_EQ(window("Qwen2ForCausalLM", {{"use_sliding_window", true}}), 4096);
  EXPECT_EQ(window("Qwen2ForCausalLM", {{"sliding_window", 9}}), 0) << "not switched on";
  EXPECT_EQ(window("LlamaForCausalLM", {{"sliding_window", 9}}), 9);
  EXPECT_EQ(window("LlamaForCausalLM", {{"sliding_window", 9}, {"use_sliding_window", false}}), 0);
  EXPECT_EQ(window("LlamaForCausalLM", json::object()), 0);
  EXPECT_THAT(complaint<ConfigError>({{"sliding_window", 0}}), HasSubstr("sliding_window"));
}

TEST(HfConfig, TakesAWindowOfSomeLayersForOneOfAll) {
  json config = of_class("Qwen2ForCausalLM", {{"sliding_window", 9}, {"use_sliding_window", true}});
  config["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_EQ(parse(config).sliding_window, 9);
  config["use_sliding_window"] = false;
  EXPECT_THAT(complaint<ConfigError>(config), HasSubstr("layer_types"));
  config["layer_types"] = {"full_attention", "full_attention"};
  EXPECT_EQ(parse(config).sliding_window, 0);
  config["layer_types"] = {"full_attention", "linear_attention"};
  EXPECT_THAT(complaint<ConfigError>(config), HasSubstr("layer_types"));
}

TEST(HfConfig, RefusesBiasesThatTheClassDoesNotHave) {
  const auto refusal = [](const char* name, const json& changes) {
    return complaint<ConfigError>(of_class(name, changes));
  };
  EXPECT_THAT(refusal("Qwen2ForCausalLM", {{"mlp_bias", true}}), HasSubstr("mlp_bias"));
  EXPECT_THAT(
      refusal("MistralForCausalLM", {{"attention_bias", true}, {"sliding_window", nullptr}}),
      HasSubstr("attention_bias"));
}

TEST(HfConfig, RefusesToGuessWhatOtherClassesHaveOtherDefaultsFor) {
  for (const char* key : {"num_key_value_heads", "max_position_embeddings"})
    EXPECT_THAT(complaint<ConfigError>(of_class("Qwen2ForCausalLM", {{key, nullptr}})),
                HasSubstr(key));
}

TEST(HfConfig, FallsBackOnTheModelTypeAndRefusesOthers) {
  EXPECT_EQ(parse({{"architectures", nullptr}, {"model_type", "llama"}}).architecture,
            "LlamaForCausalLM");
  EXPECT_THAT(complaint<ConfigError>({{"architectures", nullptr}, {"model_type", "gemma"}}),
              HasSubstr("gemma"));
  EXPECT_THAT(complaint<ConfigError>({{"model_type", "mistral"}}), HasSubstr("disagree"));
  EXPECT_THAT(complaint<ConfigError>({{"architectures", nullptr}}), HasSubstr("model_type"));
}

TEST(HfConfig, RefusesWhatWouldBeIgnored) {
  EXPECT_THAT(complaint<ConfigError>({{"hidden_act", "gelu"}}), HasSubstr("gelu"));
  EXPECT_THAT(complaint<ConfigError>({{"attention_dropout", 0.1}}), HasSubstr("attention_dropout"));
  EXPECT_THAT(complaint<ConfigError>({{"text_config", json::object()}}), HasSubstr("multimodal"));
  EXPECT_THAT(complaint<ConfigError>({{"quantization_config", {{"bits", 4}}}}),
              HasSubstr("quantiz"));
}

TEST(HfConfig, RefusesSizesOutOfRangeAndContradictions) {
  EXPECT_THAT(complaint<ConfigError>({{"hidden_size", 0}}), HasSubstr("hidden_size"));
  EXPECT_THAT(complaint<ConfigError>({{"hidden_size", nullptr}}), HasSubstr("hidden_size"));
  EXPECT_THAT(complaint<ConfigError>({{"vocab_size", std::uint64_t{1} << 63}}),
              HasSubstr("9223372036854775808"));
  EXPECT_THAT(complaint<ConfigError>({{"vocab_size", -5}}), HasSubstr("-5"));
  EXPECT_THAT(complaint<ConfigError>({{"num_key_value_heads", 3}}), HasSubstr("multiple"));
  EXPECT_THAT(complaint<ConfigError>({{"num_attention_heads", 5}}), HasSubstr("head_dim"));
  EXPECT_THAT(complaint<ConfigError>({{"head_dim", 15}}), HasSubstr("even"));
  EXPECT_THAT(complaint<ConfigError>({{"rms_norm_eps", -1.0}}), HasSubstr("rms_norm_eps"));
  EXPECT_THAT(complaint<ConfigError>({{"vocab_size", 2147483647}, {"hidden_size", 2147483640}}),
              HasSubstr("parameters"));
}

TEST(HfConfig, RefusesFieldsOfTheWrongType) {
  EXPECT_THAT(complaint<FormatError>({{"hidden_size", "64"}}), HasSubstr("hidden_size"));
  EXPECT_THAT(complaint<FormatError>({{"hidden_size", 64.0}}), HasSubstr("hidden_size"));
  EXPECT_THAT(complaint<FormatError>({{"tie_word_embeddings", 1}}), HasSubstr("tie_word"));
  EXPECT_THAT(complaint<FormatError>({{"architectures", "LlamaForCausalLM"}}),
              HasSubstr("architectures"));
  EXPECT_THAT(complaint<FormatError>({{"torch_dtype", 16}}), HasSubstr("torch_dtype"));
}

TEST(HfConfig, RefusesBrokenText) {
  const auto complaint_of = [](const std::string& text) {
    return error_of<FormatError>([&] { parse_hf_config(text, "the file"); });
  };
  EXPECT_THAT(complaint_of("{"), HasSubstr("the file"));
  EXPECT_THAT(complaint_of("[]"), HasSubstr("object"));
  EXPECT_THAT(complaint_of(R"({"hidden_size":64,"hidden_size":65})"), HasSubstr("duplicate"));
  EXPECT_THAT(complaint_of(R"({"rms_norm_eps":1e999})"), HasSubstr("JSON"));
}

TEST(HfConfig, RefusesAHugeFile) {
  const TempFolder folder;
  write_bytes(folder / "config.json", "{}");
  std::filesystem::resize_file(folder / "config.json", 1 << 30);
  EXPECT_THAT(error_of<FormatError>([&] { read_hf_config(folder.path()); }), HasSubstr("at most"));
}

TEST(HfConfig, TextOfEveryPresetReadsBackEqual) {
  for (const std::string& name : random_model_presets()) {
    const HfConfig config = random_model_preset(name);
    const HfConfig back = parse_hf_config(hf_config_text(config, DType::bf16), name);
    EXPECT_EQ(hf_config_text(back, DType::bf16), hf_config_text(config, DType::bf16));
    EXPECT_EQ(num_parameters(back), num_parameters(config));
    EXPECT_EQ(back.dtype, "bfloat16");
  }
}

TEST(HfConfig, TextOfEveryRopeReadsBackEqual) {
  for (const char* type : {"default", "linear", "llama3", "yarn"}) {
    HfConfig config = random_model_preset("tiny");
    config.rope_type = type;
    const HfConfig back = parse_hf_config(hf_config_text(config, DType::bf16), type);
    EXPECT_EQ(back.rope_type, type);
    EXPECT_EQ(back.rope_factor, config.rope_factor);
    EXPECT_EQ(hf_config_text(parse_hf_config(hf_config_text(back, DType::bf16), type), DType::bf16),
              hf_config_text(back, DType::bf16));
  }
}

TEST(HfConfig, TextOfAModelWithHeadNormsIsAQwen3s) {
  HfConfig config = random_model_preset("tiny");
  config.query_key_norm = true;
  const HfConfig back = parse_hf_config(hf_config_text(config, DType::bf16), "its text");
  EXPECT_EQ(back.architecture, "Qwen3ForCausalLM");
  EXPECT_TRUE(back.query_key_norm);
  EXPECT_EQ(num_parameters(back), num_parameters(config));
}

TEST(HfConfig, CountsTheParametersOfKnownModels) {
  EXPECT_EQ(num_parameters(random_model_preset("llama3-70b")), 70'553'706'496);
  EXPECT_EQ(num_parameters(random_model_preset("llama3-8b")), 8'030'261'248);
  EXPECT_EQ(num_parameters(random_model_preset("llama3.2-1b")), 1'235'814'400);
  EXPECT_EQ(num_parameters(random_model_preset("smollm2-135m")), 134'515'008);
}

}  // namespace
}  // namespace strata
