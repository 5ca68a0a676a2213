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

#include <vector>

#include "model/dims.hpp"
#include "strata/model/model.hpp"
#include "strata/program/program.hpp"

namespace strata {

struct LlamaCosts {
  SegmentCost embedding_forward, embedding_backward;
  SegmentCost layer_forward, layer_backward;
  SegmentCost score, loss;
};

enum class HeadWeight : std::uint8_t { own, tied };

// What the declarations need to know of the model.
struct LlamaDeclaration {
  const std::vector<BlockSpec>& blocks;
  Dims dims;
  HeadWeight head_weight = HeadWeight::own;
  LlamaCosts costs;
};

void declare_state(const LlamaDeclaration& model, Program& program, int micro_batches);

// Forward, loss and backward of all micro-batches, in the order that the variant asks for.
void declare_training(const LlamaDeclaration& model, Program& program, Sequence& sequence,
                      int micro_batches, const ProgramVariant& variant);

// Adds one micro-batch to a program and a sequence. Lives as long as one declare_* call.
class MicroBatchDeclaration {
 public:
  MicroBatchDeclaration(const LlamaDeclaration& model, Program& program, Sequence& sequence,
                        int micro_batch);

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
  Use metric();

  int work_of(const SegmentCost& cost);
  ShardId shard(Role role, int block, DType dtype, std::int64_t count);
  void append(SegmentKind kind, int block, std::vector<Use> uses, const SegmentCost& cost);

  const LlamaDeclaration& model_;
  Program& program_;
  Sequence& sequence_;
  int micro_batch_;
  ShardId input_;
};

}  // namespace strata
