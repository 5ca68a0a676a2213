#pragma once
// A Hugging Face model folder: config.json, safetensors shards (single or with an index), tokenizer
// and generation files. Import reads byte ranges and never holds the model; export writes a folder
// that transformers loads. Thread contract: one thread.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strata/checkpoint/safetensors.hpp"
#include "strata/core/byte_watch.hpp"

namespace strata {

// What config.json says of a Llama-class model, in its own words; fields checked for range and
// contradiction. Both RoPE spellings (rope_theta + rope_scaling, rope_parameters) are read and must
// agree.
struct HfConfig {
  // "LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM" or "MistralForCausalLM"; others are
  // refused by name.
  std::string architecture = {};
  std::int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0, num_key_value_heads = 0, head_dim = 0,
               max_position_embeddings = 0;
  // A token attends to the last so many, itself included; 0: to all. Strata computes no windows:
  // longer sequences must be refused.
  std::int64_t sliding_window = 0;
  double rms_norm_eps = 1e-5;
  bool tie_word_embeddings = false, attention_bias = false, mlp_bias = false;
  bool attention_output_bias = true;  // attention_bias includes o_proj; Qwen2's does not
  bool query_key_norm = false;        // Qwen3: RMSNorm over each head of q and k
  std::string rope_type = "default";  // "linear", "llama3" or "yarn"; others are refused by name
  double rope_theta = 10000;
  double rope_factor = 8, rope_low_freq_factor = 1, rope_high_freq_factor = 4,
         rope_original_max_positions = 8192;
  double rope_beta_fast = 32, rope_beta_slow = 1, rope_attention_factor = 1;  // yarn's
  bool rope_truncates = true;
  double initializer_range = 0.02;
  std::string dtype = {};  // torch_dtype or dtype; may be empty
  std::vector<std::int64_t> bos_token_ids = {}, eos_token_ids = {};  // none, one or several
};
HfConfig parse_hf_config(const std::string& json,
                         const std::string& source_name);  // Throws FormatError, ConfigError.
HfConfig read_hf_config(const std::filesystem::path& folder);

// Name and shape of one tensor the model needs.
struct ExpectedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

class HfWeights {
 public:
  // Opens the shards and checks that the folder holds exactly the expected tensors with these
  // shapes: missing or unknown names are an error listing the first 20 and the count. Ignored:
  // rotary_emb.inv_freq, and a tied lm_head.weight equal bit for bit to the embedding.
  HfWeights(const std::filesystem::path& folder, std::span<const ExpectedTensor> expected);
  ~HfWeights();

  DType dtype(const std::string& name) const;
  std::uint64_t total_bytes() const;
  // Elements [first, first + count) of tensor `name` as fp32.
  void read_f32(const std::string& name, std::int64_t first, std::span<float> target) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The most elements that a read or a TensorSource is asked for at once, in buffers of their own.
inline constexpr std::int64_t tensor_read_elements = std::int64_t{1} << 18;
inline constexpr std::int64_t tensor_source_elements = std::int64_t{1} << 20;
// What an export reads back at once.
inline constexpr std::uint64_t export_read_back_bytes = std::uint64_t{4} << 20;

// Gives elements [first, first + bytes/dtype) of tensor `name` in `dtype`, to an export.
using TensorSource = std::function<void(const std::string& name, std::int64_t first, DType dtype,
                                        std::span<std::byte> target)>;

struct ExportOptions {
  std::uint64_t shard_bytes = 5'000'000'000;
  DType dtype = DType::bf16;
  std::string card = {};  // text of the README.md written into the folder; empty: none
  ByteWatch watch = {};   // of the tensors' bytes
};

// Writes `target` (must not exist) from `base`'s config, tokenizer and generation files and the
// tensors of `source`: under a temporary name beside it, synced, each file read back from the drive
// and compared with what was written, then renamed. Throws SystemError before writing when the
// space does not suffice, Error naming file, tensor and offset when other bytes come back.
void export_hf_folder(const std::filesystem::path& base, const std::filesystem::path& target,
                      std::span<const ExpectedTensor> tensors, const TensorSource& source,
                      const ExportOptions& options);
// Removes what runs that died left of exports into `directory`, and of other things that are
// written as "NAME.tmp-PID" and renamed, where NAME `is_ours`; returns the names of what is gone.
// Whoever calls it owns the folder. An export that a live process writes there stays.
std::vector<std::string> clear_unfinished_exports(
    const std::filesystem::path& directory,
    const std::function<bool(const std::string& target)>& is_ours);
// Removes what processes that died left of exports to `target`, in a folder that nobody owns: what
// a live one is writing stays. Returns the paths of what is gone. export_hf_folder does it too.
std::vector<std::filesystem::path> clear_dead_exports(const std::filesystem::path& target);
// Throws what export_hf_folder would throw before it writes, hours earlier: the target exists, its
// parent cannot be made, or the space does not suffice.
void check_export(const std::filesystem::path& base, const std::filesystem::path& target,
                  std::span<const ExpectedTensor> tensors, const ExportOptions& options);

}  // namespace strata
