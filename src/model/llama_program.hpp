#pragma once
// What a Llama's segments use, in the order that run() finds their views in. An output is a block's
// activation; the head's weights and gradients are its own, then, in a tied model, the embedding's.
//
//   forward embedding   reads weight, input; produces output
//   forward layer       reads weight, input, output before; produces output
//   score head          reads weights, input, last output; produces metric
//   loss head           reads weights, input, last output; produces metric, last output's gradient;
//                       accumulates gradients
//   backward layer      reads weight, input, output before, output's gradient;
//                       produces gradient of the output before; accumulates gradient
//   backward embedding  reads input, output's gradient; accumulates gradient
//
// A layer that keeps its insides: its forward produces `saved` after its output, and its backward
// reads it after its gradient.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/dims.hpp"
#include "strata/model/model.hpp"
#include "strata/program/program.hpp"

namespace strata {

// Segments of one kind compute the same and cost the same.
enum class LlamaSegment : std::uint8_t {
  embedding_forward,
  embedding_backward,
  layer_forward,
  layer_backward,
  layer_forward_keeping,
  layer_backward_kept,
  score,
  loss,
};
inline constexpr std::size_t num_llama_segments = 8;

struct SegmentCost {
  std::uint64_t scratch_bytes = 0;
  SegmentWork work;
};
using LlamaCosts = std::array<SegmentCost, num_llama_segments>;

enum class HeadWeight : std::uint8_t { own, tied };

// What the declarations need to know of the model.
struct LlamaDeclaration {
  const std::vector<BlockSpec>& blocks;
  Dims dims;
  HeadWeight head_weight = HeadWeight::own;
  std::uint64_t saved_bytes = 0;  // of a layer that keeps its insides; a multiple of 4
  const LlamaCosts& costs;
};

void declare_state(const LlamaDeclaration& model, Program& program, int micro_batches);

// Forward, loss and backward of all micro-batches, in the order that the variant asks for.
void declare_training(const LlamaDeclaration& model, Program& program, Sequence& sequence,
                      int micro_batches, const ProgramVariant& variant);

// Adds one micro-batch to a program and a sequence. Lives as long as one declare_* call.
class MicroBatchDeclaration {
 public:
  MicroBatchDeclaration(const LlamaDeclaration& model, Program& program, Sequence& sequence,
                        int micro_batch, int kept_layers = 0);

  void forward(int block);  // any but the head
  void score();
  void loss();
  void backward(int block);  // any but the head

 private:
  int head_block() const { return static_cast<int>(model_.blocks.size()) - 1; }
  std::vector<int> head_weight_blocks() const;
  void forward_embedding();
  void forward_layer(int block);
  void backward_layer(int block);
  void backward_embedding();

  Use weight(int block) const;
  Use gradient(int block) const;
  Use input() const { return {input_, Access::read}; }
  Use output(int block, Access access);
  Use output_gradient(int block, Access access);
  Use saved(int block, Access access);
  Use metric();

  bool keeps(int block) const;
  ShardId shard(Role role, int block, DType dtype, std::int64_t count);
  void append(SegmentKind kind, int block, std::vector<Use> uses, LlamaSegment costs_of);

  const LlamaDeclaration& model_;
  Program& program_;
  Sequence& sequence_;
  int micro_batch_;
  int kept_layers_;
  ShardId input_;
};

}  // namespace strata
