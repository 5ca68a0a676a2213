#include "model/llama_layout.hpp"

#include <utility>

#include "strata/core/bytes.hpp"

namespace strata {
namespace {

constexpr std::int64_t parameter_alignment = 64;

std::int64_t aligned(std::int64_t elements) {
  return ceil_div(elements, parameter_alignment) * parameter_alignment;
}

// Appends parameters to a block.
class BlockBuilder {
 public:
  BlockBuilder(std::string block_name, std::string prefix) : prefix_(std::move(prefix)) {
    block_.name = std::move(block_name);
  }

  ParameterSlice matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    return append(name, {rows, columns}, true);
  }
  ParameterSlice vector(const std::string& name, std::int64_t size) {
    return append(name, {size}, false);
  }

  BlockSpec finish() { return std::move(block_); }

 private:
  ParameterSlice append(const std::string& name, Shape shape, bool decays) {
    const std::int64_t offset = block_.count;
    block_.parameters.push_back({prefix_ + name, shape, offset, decays});
    block_.count = aligned(offset + shape.count());
    return {offset, shape};
  }

  std::string prefix_;
  BlockSpec block_;
};

EmbeddingLayout lay_out_embedding(const LlamaConfig& config, BlockBuilder& block) {
  return {block.matrix("embed_tokens.weight", config.vocab_size, config.hidden_size)};
}

void lay_out_head_norms(const LlamaConfig& config, BlockBuilder& block, LayerLayout& layer) {
  if (!config.query_key_norm) return;
  layer.query_norm = block.vector("self_attn.q_norm.weight", config.head_dim);
  layer.key_norm = block.vector("self_attn.k_norm.weight", config.head_dim);
}

// Matrices that share an input lie side by side, their biases behind them.
void lay_out_attention(const LlamaConfig& config, BlockBuilder& block, LayerLayout& layer) {
  const std::int64_t h = config.hidden_size;
  const std::int64_t queries = config.num_heads * config.head_dim;
  const std::int64_t keys = config.num_key_value_heads * config.head_dim;
  layer.query.weight = block.matrix("self_attn.q_proj.weight", queries, h);
  layer.key.weight = block.matrix("self_attn.k_proj.weight", keys, h);
  layer.value.weight = block.matrix("self_attn.v_proj.weight", keys, h);
  layer.output.weight = block.matrix("self_attn.o_proj.weight", h, queries);
  if (!config.attention_bias) return;
  layer.query.bias = block.vector("self_attn.q_proj.bias", queries);
  layer.key.bias = block.vector("self_attn.k_proj.bias", keys);
  layer.value.bias = block.vector("self_attn.v_proj.bias", keys);
  if (config.attention_output_bias) layer.output.bias = block.vector("self_attn.o_proj.bias", h);
}

void lay_out_mlp(const LlamaConfig& config, BlockBuilder& block, LayerLayout& layer) {
  const std::int64_t h = config.hidden_size, f = config.intermediate_size;
  layer.gate.weight = block.matrix("mlp.gate_proj.weight", f, h);
  layer.up.weight = block.matrix("mlp.up_proj.weight", f, h);
  layer.down.weight = block.matrix("mlp.down_proj.weight", h, f);
  if (!config.mlp_bias) return;
  layer.gate.bias = block.vector("mlp.gate_proj.bias", f);
  layer.up.bias = block.vector("mlp.up_proj.bias", f);
  layer.down.bias = block.vector("mlp.down_proj.bias", h);
}

LayerLayout lay_out_layer(const LlamaConfig& config, BlockBuilder& block) {
  LayerLayout layer;
  layer.input_norm = block.vector("input_layernorm.weight", config.hidden_size);
  lay_out_attention(config, block, layer);
  lay_out_head_norms(config, block, layer);
  layer.post_attention_norm = block.vector("post_attention_layernorm.weight", config.hidden_size);
  lay_out_mlp(config, block, layer);
  return layer;
}

HeadLayout lay_out_head(const LlamaConfig& config, BlockBuilder& block) {
  HeadLayout head;
  head.norm = block.vector("model.norm.weight", config.hidden_size);
  if (!config.tie_word_embeddings) {
    head.projection = block.matrix("lm_head.weight", config.vocab_size, config.hidden_size);
  }
  return head;
}

}  // namespace

std::vector<AlignmentGap> alignment_gaps(const BlockSpec& block) {
  std::vector<AlignmentGap> gaps;
  for (std::size_t i = 0; i < block.parameters.size(); ++i) {
    const ParameterSpec& parameter = block.parameters[i];
    const std::int64_t end = parameter.offset + parameter.count();
    const bool last = i + 1 == block.parameters.size();
    const std::int64_t next = last ? block.count : block.parameters[i + 1].offset;
    if (next > end) gaps.push_back({end, next - end});
  }
  return gaps;
}

LlamaLayout::LlamaLayout(const LlamaConfig& config) {
  BlockBuilder first("embedding", "model.");
  embedding = lay_out_embedding(config, first);
  blocks.push_back(first.finish());
  for (std::int64_t i = 0; i < config.num_layers; ++i) {
    const std::string name = "layers." + std::to_string(i);
    BlockBuilder block(name, "model." + name + ".");
    layer = lay_out_layer(config, block);
    blocks.push_back(block.finish());
  }
  BlockBuilder last("head", "");
  head = lay_out_head(config, last);
  blocks.push_back(last.finish());
}

}  // namespace strata
