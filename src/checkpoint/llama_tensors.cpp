#include "strata/checkpoint/llama_tensors.hpp"

#include <fmt/format.h>

#include <functional>
#include <numeric>
#include <utility>

namespace strata {
namespace {

class Lister {
 public:
  explicit Lister(const HfConfig& config) : config_(config) {}

  std::vector<ExpectedTensor> list() {
    add("model.embed_tokens.weight", {config_.vocab_size, config_.hidden_size});
    for (std::int64_t layer = 0; layer < config_.num_hidden_layers; ++layer) add_layer(layer);
    add("model.norm.weight", {config_.hidden_size});
    if (!config_.tie_word_embeddings)
      add("lm_head.weight", {config_.vocab_size, config_.hidden_size});
    return std::move(tensors_);
  }

 private:
  void add(std::string name, std::vector<std::int64_t> shape) {
    tensors_.push_back({std::move(name), std::move(shape)});
  }

  void add_linear(const std::string& name, std::int64_t out, std::int64_t in, bool has_bias) {
    add(name + ".weight", {out, in});
    if (has_bias) add(name + ".bias", {out});
  }

  void add_head_norms(const std::string& prefix) {
    add(prefix + "self_attn.q_norm.weight", {config_.head_dim});
    add(prefix + "self_attn.k_norm.weight", {config_.head_dim});
  }

  void add_layer(std::int64_t layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    const std::int64_t hidden = config_.hidden_size, ffn = config_.intermediate_size;
    const std::int64_t queries = config_.num_attention_heads * config_.head_dim;
    const std::int64_t keys = config_.num_key_value_heads * config_.head_dim;
    add(prefix + "input_layernorm.weight", {hidden});
    add_linear(prefix + "self_attn.q_proj", queries, hidden, config_.attention_bias);
    add_linear(prefix + "self_attn.k_proj", keys, hidden, config_.attention_bias);
    add_linear(prefix + "self_attn.v_proj", keys, hidden, config_.attention_bias);
    add_linear(prefix + "self_attn.o_proj", hidden, queries,
               config_.attention_bias && config_.attention_output_bias);
    if (config_.query_key_norm) add_head_norms(prefix);
    add(prefix + "post_attention_layernorm.weight", {hidden});
    add_linear(prefix + "mlp.gate_proj", ffn, hidden, config_.mlp_bias);
    add_linear(prefix + "mlp.up_proj", ffn, hidden, config_.mlp_bias);
    add_linear(prefix + "mlp.down_proj", hidden, ffn, config_.mlp_bias);
  }

  const HfConfig& config_;
  std::vector<ExpectedTensor> tensors_;
};

}  // namespace

std::vector<ExpectedTensor> llama_tensors(const HfConfig& config) { return Lister(config).list(); }

std::int64_t element_count(const ExpectedTensor& tensor) {
  return std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1},
                         std::multiplies<>());
}

std::int64_t num_parameters(const HfConfig& config) {
  std::int64_t total = 0;
  for (const ExpectedTensor& tensor : llama_tensors(config)) total += element_count(tensor);
  return total;
}

}  // namespace strata
