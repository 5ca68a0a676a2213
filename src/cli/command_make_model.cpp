#include <fmt/format.h>

#include <optional>

#include "cli/command.hpp"
#include "strata/checkpoint/llama_tensors.hpp"
#include "strata/checkpoint/random_model.hpp"
#include "strata/core/bytes.hpp"
#include "strata/core/error.hpp"

namespace strata {
namespace {

struct MakeModelArguments {
  std::string folder, preset = "tiny", dtype = "bf16", shard_size = "5GB", rope_type;
  std::optional<std::int64_t> vocab_size, hidden_size, intermediate_size, layers, heads, kv_heads,
      head_dim, positions;
  std::optional<bool> tied, attention_bias, mlp_bias, query_key_norm;
  std::uint64_t seed = 42;
  bool shape_only = false;
};

template <typename T, typename U>
void set(T& target, const std::optional<U>& value) {
  if (value) target = *value;
}

HfConfig shape_of(const MakeModelArguments& o) {
  HfConfig config = random_model_preset(o.preset);
  set(config.vocab_size, o.vocab_size);
  set(config.hidden_size, o.hidden_size);
  set(config.intermediate_size, o.intermediate_size);
  set(config.num_hidden_layers, o.layers);
  if (o.heads) config.num_attention_heads = config.num_key_value_heads = *o.heads;
  set(config.num_key_value_heads, o.kv_heads);
  if (o.hidden_size || o.heads)
    config.head_dim = config.hidden_size / std::max<std::int64_t>(1, config.num_attention_heads);
  set(config.head_dim, o.head_dim);
  set(config.max_position_embeddings, o.positions);
  set(config.tie_word_embeddings, o.tied);
  set(config.attention_bias, o.attention_bias);
  set(config.mlp_bias, o.mlp_bias);
  set(config.query_key_norm, o.query_key_norm);
  if (!o.rope_type.empty()) config.rope_type = o.rope_type;
  return config;
}

DType parse_random_dtype(const std::string& name) {
  if (name == "bf16") return DType::bf16;
  if (name == "f32" || name == "fp32") return DType::f32;
  if (name == "f16" || name == "fp16") return DType::f16;
  throw ConfigError(fmt::format("--dtype {}: bf16, f32 or f16", name));
}

int make_model(const MakeModelArguments& o) {
  RandomModelOptions options;
  options.config = shape_of(o);
  options.dtype = parse_random_dtype(o.dtype);
  options.seed = o.seed;
  options.shard_bytes = parse_bytes(o.shard_size);
  options.shape_only = o.shape_only;
  make_random_model(o.folder, options);
  fmt::print("wrote {}: a random {} of {} parameters{}\n", o.folder,
             read_hf_config(o.folder).architecture, num_parameters(options.config),
             o.shape_only ? ", shape only" : "");
  return 0;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

void add_make_model(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "make-model", "Write a random Hugging Face folder of a Llama or Qwen3 of any size");
  auto o = std::make_shared<MakeModelArguments>();
  command->add_option("folder", o->folder, "Folder to write; must not exist")->required();
  command
      ->add_option("--preset", o->preset, "Shape to start from: " + joined(random_model_presets()))
      ->capture_default_str();
  command->add_option("--vocab-size", o->vocab_size, "Tokens the model knows");
  command->add_option("--hidden-size", o->hidden_size, "Width of the residual stream");
  command->add_option("--intermediate-size", o->intermediate_size, "Width inside of the MLP");
  command->add_option("--layers", o->layers, "Decoder layers");
  command->add_option("--heads", o->heads, "Attention heads");
  command->add_option("--kv-heads", o->kv_heads, "Key and value heads; default: as --heads");
  command->add_option("--head-dim", o->head_dim, "Width of a head; default: hidden size / heads");
  command->add_option("--max-positions", o->positions,
                      "Longest sequence (max_position_embeddings)");
  command->add_option("--rope", o->rope_type, "RoPE type: default, linear, llama3 or yarn");
  command->add_option("--tied", o->tied, "Whether the head shares the embedding: true or false");
  command->add_option("--attention-bias", o->attention_bias, "Biases in attention: true or false");
  command->add_option("--mlp-bias", o->mlp_bias, "Biases in the MLP: true or false");
  command->add_option("--query-key-norm", o->query_key_norm,
                      "Norms of the heads of q and k, which make a Qwen3: true or false");
  command->add_option("--dtype", o->dtype, "Stored as bf16, f32 or f16")->capture_default_str();
  command->add_option("--seed", o->seed, "Seed of the weights")->capture_default_str();
  command->add_option("--shard-size", o->shard_size, "Most bytes per file")->capture_default_str();
  command->add_flag("--shape-only", o->shape_only, "config.json alone: enough to plan with");
  command->callback([&action, o] { action = [o] { return make_model(*o); }; });
}

}  // namespace strata
