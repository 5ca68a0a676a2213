#pragma once
// Runs a Llama's segments over views, by llama_program.hpp's table, with the kernels it is given.
// Thread contract: as Model's.

#include <cstddef>
#include <vector>

#include "model/decoder_layer.hpp"
#include "model/dims.hpp"
#include "model/llama_head.hpp"
#include "model/llama_layout.hpp"
#include "model/llama_program.hpp"
#include "model/token_embedding.hpp"
#include "strata/program/step.hpp"

namespace strata {

class SegmentOperands;

class LlamaRunner final : public SegmentRunner {
 public:
  // The config is one that make_llama() accepts.
  LlamaRunner(const LlamaConfig& config, const ComputeShape& shape, Kernels& kernels);

  const LlamaLayout& layout() const { return layout_; }
  LlamaDeclaration declaration(const LlamaCosts& costs) const;
  std::uint64_t scratch_bytes(LlamaSegment segment) const;

  void run(const Segment& segment, const SegmentViews& views, const StepArgs& args,
           Stream& stream) override;

 private:
  void forward_embedding(const SegmentOperands& use, Stream& stream) const;
  void forward_layer(const SegmentOperands& use, Stream& stream) const;
  void score(const SegmentOperands& use, const StepArgs& args, Stream& stream) const;
  void loss(const SegmentOperands& use, const StepArgs& args, Stream& stream) const;
  void backward_layer(int block, const SegmentOperands& use, Stream& stream) const;
  void backward_embedding(const SegmentOperands& use, Stream& stream) const;

  std::size_t head_block() const { return layout_.blocks.size() - 1; }
  std::size_t num_head_weights() const { return head_weight_ == HeadWeight::tied ? 2 : 1; }
  HeadWeights head_weights(const SegmentOperands& use, std::size_t first) const;
  ScoreArgs score_args(const SegmentOperands& use, const StepArgs& args) const;
  void clear_gaps(std::size_t block, const TensorView& contribution, Stream& stream) const;

  // Constant after construction.
  Dims dims_;
  HeadWeight head_weight_;
  LlamaLayout layout_;
  std::vector<std::vector<AlignmentGap>> gaps_;  // per block
  Kernels& kernels_;
  TokenEmbedding embedding_;
  DecoderLayer layer_;
  LlamaHead head_;
};

}  // namespace strata
