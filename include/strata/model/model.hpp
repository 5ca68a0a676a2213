#pragma once
// A Model is a transformer as blocks over flat weight vectors. It declares what each block's
// segments use and computes them over views; it never knows where anything lives and keeps nothing
// between calls. Thread contract: immutable after construction but for run(), which one thread (the
// compute lane) calls.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "strata/core/tensor_view.hpp"
#include "strata/kernels/kernels.hpp"
#include "strata/program/program.hpp"
#include "strata/program/step.hpp"

namespace strata {

// One named tensor of a block and where it lies in the block's flat vector.
struct ParameterSpec {
  std::string name;         // Hugging Face name: "model.layers.3.self_attn.q_proj.weight"
  Shape shape;              // [out, in], row-major
  std::int64_t offset = 0;  // elements from the start of the block's vector; a multiple of 64
  bool decays = true;       // false for norms and biases
  std::int64_t count() const { return shape.count(); }
};

struct BlockSpec {
  std::string name;  // "embedding", "layers.3", "head"
  std::vector<ParameterSpec> parameters;
  std::int64_t count =
      0;  // elements of the flat vector, alignment gaps included (zero, never trained)
};

enum class Rope : std::uint8_t { plain, linear, llama3, yarn };  // "default" and rope_types

struct LlamaConfig {
  std::int64_t vocab_size = 0, hidden_size = 0, intermediate_size = 0, num_layers = 0;
  std::int64_t num_heads = 0, num_key_value_heads = 0, head_dim = 0;
  std::int64_t max_positions = 0;
  float rms_norm_epsilon = 1e-5f;
  bool tie_word_embeddings = false, attention_bias = false, mlp_bias = false;
  bool attention_output_bias = true;  // attention_bias includes the output projection
  bool query_key_norm = false;        // RMSNorm over each head of q and k, before RoPE
  Rope rope = Rope::plain;
  double rope_theta = 10000.0;
  double rope_factor = 8, rope_low_freq_factor = 1, rope_high_freq_factor = 4,
         rope_original_max_positions = 8192;
  double rope_beta_fast = 32, rope_beta_slow = 1;  // yarn: turns at which it begins and ends
  bool rope_truncates = true;                      // yarn: between whole pairs
  double rope_attention_factor = 1;                // of what is rotated; yarn: above 1
  double initializer_range = 0.02;
};

// What a run asks of the model.
struct ComputeShape {
  DType compute_dtype = DType::bf16;  // weights, activations, contributions
  std::int64_t tokens_per_micro_batch = 0;
  std::int64_t loss_chunk_tokens = 0;  // 0: chosen so that a chunk of logits stays near 64 MiB
  std::int64_t row_tokens = 0;  // no document is longer; 0: the micro-batch is one row. For the
                                // work declared only: what is computed follows the documents
};

// The input shard of one micro-batch: three i32 vectors of tokens_per_micro_batch each, in this
// order.
struct MicroBatchView {
  std::int32_t* tokens;  // in [0, vocab)
  std::int32_t* labels;  // next token, or -1: not trained
  std::int32_t*
      document_start;  // index of the first token of this token's document within the micro-batch
};
MicroBatchView micro_batch_view(std::byte* input, std::int64_t tokens_per_micro_batch);

class Model : public SegmentRunner {
 public:
  virtual const std::vector<BlockSpec>& blocks() const = 0;
  virtual std::int64_t num_parameters() const = 0;

  // Adds the block names and the weight shards of every block to the program and, with
  // `micro_batches` > 0, the gradient shards of a step of so many micro-batches: in the compute
  // dtype where exactly one contribution makes the gradient, in f32 where several are summed. Comes
  // first; sets the contribution dtype. `micro_batches` 0: no gradients.
  virtual void declare_state(Program& program, int micro_batches) const = 0;
  // Adds the shards and segments of a training step, up to its gradients, and appends them to
  // `sequence`: for each group of micro-batches forward block by block, the losses, and backward
  // block by block, in each block the micro-batches of the group in ascending order. So every
  // gradient is summed in the order of micro-batches, whatever the group. Throws ConfigError when
  // groups do not divide the micro-batches, and for groups of several with a tied head, which adds
  // to the embedding's gradient as well: there the group would change the order of the sum. Kept
  // layers save what their backward reads (Role::saved); of more than there are, all do.
  virtual void declare_training(Program& program, Sequence& sequence, int micro_batches,
                                const ProgramVariant& variant) const = 0;
  // Adds the shards and segments of one micro-batch's evaluation, and appends them to `sequence`.
  // Shards of the same micro-batch that the program already has (a training step's) are used again.
  virtual void declare_score(Program& program, Sequence& sequence, int micro_batch) const = 0;
};

// Inverse frequencies of the head_dim/2 rotated pairs, rounded to fp32 where transformers rounds.
std::vector<float> rope_inverse_frequencies(const LlamaConfig& config);

// Throws ConfigError when the sizes contradict each other. `kernels` must outlive the model.
std::unique_ptr<Model> make_llama(const LlamaConfig& config, const ComputeShape& shape,
                                  Kernels& kernels);

}  // namespace strata
