#include <cmath>
#include <nlohmann/json.hpp>

#include "config_dtype.hpp"
#include "strata/checkpoint/random_model.hpp"

namespace strata {
namespace {

using nlohmann::json;

// transformers wants whole numbers without a point where it declares them so.
json whole_if_whole(double value) {
  if (std::floor(value) == value && std::abs(value) < 1e15) return static_cast<std::int64_t>(value);
  return value;
}

json token_ids(const std::vector<std::int64_t>& ids) {
  if (ids.empty()) return nullptr;
  if (ids.size() == 1) return ids.front();
  return ids;
}

json rope_scaling(const HfConfig& config) {
  if (config.rope_type == "default") return nullptr;
  json scaling = {{"rope_type", config.rope_type}, {"factor", config.rope_factor}};
  if (config.rope_type == "linear") return scaling;
  scaling["original_max_position_embeddings"] = whole_if_whole(config.rope_original_max_positions);
  if (config.rope_type == "llama3") {
    scaling["low_freq_factor"] = config.rope_low_freq_factor;
    scaling["high_freq_factor"] = config.rope_high_freq_factor;
    return scaling;
  }
  scaling["beta_fast"] = config.rope_beta_fast;
  scaling["beta_slow"] = config.rope_beta_slow;
  scaling["truncate"] = config.rope_truncates;
  // Else the one that follows from the factor.
  if (config.rope_attention_factor != 1) scaling["attention_factor"] = config.rope_attention_factor;
  return scaling;
}

}  // namespace

std::string hf_config_text(const HfConfig& config, DType dtype) {
  const bool is_qwen3 = config.query_key_norm;
  const json document = {{"architectures", {is_qwen3 ? "Qwen3ForCausalLM" : "LlamaForCausalLM"}},
                         {"model_type", is_qwen3 ? "qwen3" : "llama"},
                         {"vocab_size", config.vocab_size},
                         {"hidden_size", config.hidden_size},
                         {"intermediate_size", config.intermediate_size},
                         {"num_hidden_layers", config.num_hidden_layers},
                         {"num_attention_heads", config.num_attention_heads},
                         {"num_key_value_heads", config.num_key_value_heads},
                         {"head_dim", config.head_dim},
                         {"max_position_embeddings", config.max_position_embeddings},
                         {"rms_norm_eps", config.rms_norm_eps},
                         {"tie_word_embeddings", config.tie_word_embeddings},
                         {"attention_bias", config.attention_bias},
                         {"attention_dropout", 0.0},
                         {"mlp_bias", config.mlp_bias},
                         {"hidden_act", "silu"},
                         {"initializer_range", config.initializer_range},
                         {"rope_theta", config.rope_theta},
                         {"rope_scaling", rope_scaling(config)},
                         {"bos_token_id", token_ids(config.bos_token_ids)},
                         {"eos_token_id", token_ids(config.eos_token_ids)},
                         {"torch_dtype", std::string(hf_dtype_name(dtype))},
                         {"use_cache", true}};
  return document.dump(2) + "\n";
}

}  // namespace strata
