#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "display.hpp"
#include "name_list.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

// Small enough for a test of every tier, with grouped queries and the built-in byte tokenizer's
// vocabulary.
HfConfig tiny() {
  return {.vocab_size = 257,
          .hidden_size = 64,
          .intermediate_size = 160,
          .num_hidden_layers = 3,
          .num_attention_heads = 4,
          .num_key_value_heads = 2,
          .head_dim = 16,
          .max_position_embeddings = 512,
          .eos_token_ids = {256}};
}

HfConfig m51() {
  return {.vocab_size = 16384,
          .hidden_size = 512,
          .intermediate_size = 1376,
          .num_hidden_layers = 11,
          .num_attention_heads = 8,
          .num_key_value_heads = 8,
          .head_dim = 64,
          .max_position_embeddings = 2048};
}

HfConfig smollm2_135m() {
  return {.vocab_size = 49152,
          .hidden_size = 576,
          .intermediate_size = 1536,
          .num_hidden_layers = 30,
          .num_attention_heads = 9,
          .num_key_value_heads = 3,
          .head_dim = 64,
          .max_position_embeddings = 8192,
          .tie_word_embeddings = true,
          .rope_theta = 100000,
          .initializer_range = 1.0 / 24,
          .bos_token_ids = {0},
          .eos_token_ids = {0}};
}

HfConfig llama3_common() {
  return {.vocab_size = 128256,
          .num_key_value_heads = 8,
          .max_position_embeddings = 131072,
          .rope_type = "llama3",
          .rope_theta = 500000,
          .bos_token_ids = {128000},
          .eos_token_ids = {128001}};
}

HfConfig llama3_1b() {
  HfConfig config = llama3_common();
  config.hidden_size = 2048;
  config.intermediate_size = 8192;
  config.num_hidden_layers = 16;
  config.num_attention_heads = 32;
  config.head_dim = 64;
  config.tie_word_embeddings = true;
  config.rope_factor = 32;
  return config;
}

HfConfig llama3_8b() {
  HfConfig config = llama3_common();
  config.hidden_size = 4096;
  config.intermediate_size = 14336;
  config.num_hidden_layers = 32;
  config.num_attention_heads = 32;
  config.head_dim = 128;
  return config;
}

HfConfig llama3_70b() {
  HfConfig config = llama3_common();
  config.hidden_size = 8192;
  config.intermediate_size = 28672;
  config.num_hidden_layers = 80;
  config.num_attention_heads = 64;
  config.head_dim = 128;
  return config;
}

struct Preset {
  std::string_view name;
  HfConfig (*make)();
};
constexpr std::array<Preset, 6> presets{{{"tiny", tiny},
                                         {"51m", m51},
                                         {"smollm2-135m", smollm2_135m},
                                         {"llama3.2-1b", llama3_1b},
                                         {"llama3-8b", llama3_8b},
                                         {"llama3-70b", llama3_70b}}};

}  // namespace

std::vector<std::string> random_model_presets() {
  std::vector<std::string> names;
  for (const Preset& preset : presets) names.emplace_back(preset.name);
  return names;
}

HfConfig random_model_preset(std::string_view name) {
  const auto* found = std::ranges::find(presets, name, &Preset::name);
  if (found == presets.end()) {
    NameList names;
    for (const Preset& preset : presets) names.add(std::string(preset.name));
    throw ConfigError(
        fmt::format("no model preset {}; there are {}", quote_name(name), names.text()));
  }
  HfConfig config = found->make();
  config.architecture = "LlamaForCausalLM";
  return config;
}

}  // namespace strata
