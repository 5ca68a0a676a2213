#pragma once
// Random Hugging Face folders of Llama-class models, any size: for tests, benchmarks and training
// from scratch. Every element is a pure function of (seed, tensor name, index), so shard size,
// dtype and threads never change a value. Thread contract: any thread.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/checkpoint/hf_folder.hpp"

namespace strata {

struct RandomModelOptions {
  // Its architecture and dtype fields are ignored: with query_key_norm a Qwen3ForCausalLM is made,
  // else a LlamaForCausalLM.
  HfConfig config;
  DType dtype = DType::bf16;  // f32, bf16 or f16
  std::uint64_t seed = 42;
  std::uint64_t shard_bytes = 5'000'000'000;
  bool shape_only = false;  // config.json alone, enough to plan with
  int threads = 0;          // 0: one per core
};

// Names that random_model_preset() knows: tiny, 51m, smollm2-135m, llama3.2-1b, llama3-8b,
// llama3-70b.
std::vector<std::string> random_model_presets();
// Throws ConfigError listing the presets when `name` is none.
HfConfig random_model_preset(std::string_view name);

// Writes `folder` (must not exist) under a temporary name and renames it when whole. Norms are 1,
// biases 0, the rest normal with deviation initializer_range, as transformers initialises. Throws
// ConfigError, SystemError.
void make_random_model(const std::filesystem::path& folder, const RandomModelOptions& options);

// The config.json that make_random_model writes: every field stated, in the spelling of
// transformers 4, which 5 reads too.
std::string hf_config_text(const HfConfig& config, DType dtype);

// Elements [first, first + target.size()) of one tensor of the random model.
void fill_random_weights(std::uint64_t seed, const HfConfig& config, const std::string& name,
                         std::int64_t first, std::span<float> target);

}  // namespace strata
