#include <fmt/format.h>

#include <algorithm>

#include "config_dtype.hpp"
#include "display.hpp"
#include "json_fields.hpp"
#include "model_family.hpp"
#include "rope_config.hpp"
#include "strata/checkpoint/hf_folder.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"
#include "strata/core/plain_file.hpp"
#include "strict_json.hpp"

namespace strata {
namespace {

using nlohmann::json;

constexpr std::int64_t size_max = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t layers_max = 100'000;

void refuse_multimodal(const JsonFields& root) {
  if (root.has("text_config") || root.has("vision_config")) {
    root.refuse("multimodal models (text_config, vision_config) are not supported");
  }
}

void refuse_unsupported(const JsonFields& root) {
  const std::string activation = root.text("hidden_act").value_or("silu");
  if (activation != "silu") {
    root.refuse(
        fmt::format("hidden_act {} is not supported; supported: silu", quote_name(activation)));
  }
  if (root.has("quantization_config")) {
    root.refuse("quantized weights (quantization_config) are not supported; use the bf16 model");
  }
  if (root.number("attention_dropout").value_or(0) != 0) {
    root.refuse("attention_dropout other than 0 is not supported");
  }
}

bool is_llama(const HfConfig& config) { return config.architecture == "LlamaForCausalLM"; }

void read_heads(const JsonFields& root, HfConfig& config) {
  config.num_attention_heads = root.required_integer("num_attention_heads", 1, size_max);
  const auto pairs = root.integer("num_key_value_heads", 1, size_max);
  if (!pairs && !is_llama(config)) root.refuse("'num_key_value_heads' is not given");
  config.num_key_value_heads = pairs.value_or(config.num_attention_heads);
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    root.refuse(fmt::format("num_attention_heads {} is no multiple of num_key_value_heads {}",
                            config.num_attention_heads, config.num_key_value_heads));
  }
  const auto head_dim = root.integer("head_dim", 2, size_max);
  if (!head_dim && config.query_key_norm) root.refuse("'head_dim' is not given");
  if (!head_dim && config.hidden_size % config.num_attention_heads != 0) {
    root.refuse(fmt::format(
        "hidden_size {} is no multiple of num_attention_heads {}, and there is no head_dim",
        config.hidden_size, config.num_attention_heads));
  }
  config.head_dim = head_dim.value_or(config.hidden_size / config.num_attention_heads);
  if (config.head_dim < 2 || config.head_dim % 2 != 0) {
    root.refuse(fmt::format("head_dim {} is not even, so it cannot be rotated", config.head_dim));
  }
}

// Keeps every later product of sizes far from overflow.
void check_total(const JsonFields& root, const HfConfig& config) {
  constexpr double parameters_max = 1e15;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double attention = 4 * real(config.num_attention_heads) * real(config.head_dim);
  const double width = attention + 3 * real(config.intermediate_size) + 2;
  const double total = real(config.hidden_size) *
                       (2 * real(config.vocab_size) + real(config.num_hidden_layers) * width);
  if (total > parameters_max) {
    root.refuse(
        fmt::format("the sizes make a model of {:.3g} parameters; at most {:.0e} are accepted",
                    total, parameters_max));
  }
}

// Absent fields take the defaults of transformers' LlamaConfig; sizes must be stated, and so must
// what other classes have other defaults for.
void read_sizes(const JsonFields& root, HfConfig& config) {
  config.vocab_size = root.required_integer("vocab_size", 1, size_max);
  config.hidden_size = root.required_integer("hidden_size", 1, size_max);
  config.intermediate_size = root.required_integer("intermediate_size", 1, size_max);
  config.num_hidden_layers = root.required_integer("num_hidden_layers", 1, layers_max);
  const auto positions = root.integer("max_position_embeddings", 1, size_max);
  if (!positions && !is_llama(config)) root.refuse("'max_position_embeddings' is not given");
  config.max_position_embeddings = positions.value_or(2048);
  read_heads(root, config);
  check_total(root, config);
}

std::string read_dtype(const JsonFields& root) {
  const auto now = root.text("dtype"), before = root.text("torch_dtype");
  if (now && before && *now != *before) {
    root.refuse(fmt::format("'dtype' {} and 'torch_dtype' {} disagree", quote_name(*now),
                            quote_name(*before)));
  }
  return now.value_or(before.value_or(""));
}

// transformers allows a single id or a list.
std::vector<std::int64_t> read_token_ids(const JsonFields& root, const char* key) {
  const json* value = root.find(key);
  if (value == nullptr) return {};
  const json list = value->is_array() ? *value : json::array({*value});
  std::vector<std::int64_t> ids;
  for (const json& id : list) {
    if (!id.is_number_integer())
      root.bad_format(fmt::format("'{}' is no token id or list of them", key));
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

HfConfig config_of(const JsonFields& root) {
  HfConfig config;
  refuse_multimodal(root);
  const ModelFamily& family = read_family(root);
  config.architecture = family.architecture;
  config.query_key_norm = family.head_norms == HeadNorms::query_key;
  refuse_unsupported(root);
  read_sizes(root, config);
  config.rms_norm_eps = root.positive("rms_norm_eps").value_or(1e-6);
  config.tie_word_embeddings = root.boolean("tie_word_embeddings").value_or(false);
  read_biases(root, family, config);
  read_window(root, family, config);
  config.initializer_range = root.positive("initializer_range").value_or(0.02);
  config.dtype = read_dtype(root);
  config.bos_token_ids = read_token_ids(root, "bos_token_id");
  config.eos_token_ids = read_token_ids(root, "eos_token_id");
  read_rope(root, config);
  return config;
}

}  // namespace

HfConfig parse_hf_config(const std::string& text, const std::string& source_name) {
  const json document = parse_strict_json(text, source_name);
  return config_of(JsonFields(document, source_name));
}

HfConfig read_hf_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  return parse_hf_config(read_text_file(path, config_bytes_max), path.string());
}

}  // namespace strata
