#pragma once
// The last block: final norm, projection onto the vocabulary and cross-entropy, over chunks of
// tokens so that the logits of a micro-batch never exist at once. Thread contract: immutable after
// construction.

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/dims.hpp"
#include "model/llama_layout.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata {

class ScratchArena;

struct HeadWeights {
  TensorView norm_h;
  TensorView projection_vh;
};

struct ScoreArgs {
  HeadWeights weights;
  TensorView labels_t;
  TensorView x_th;
  double loss_scale = 1;
  TensorView loss;  // f64, one element, written: the sum of the scaled token losses
};

struct LossArgs {
  ScoreArgs score;
  TensorView dx_th;           // written
  HeadWeights contributions;  // written
};

class LlamaHead {
 public:
  // `chunk_tokens` 0: a chunk of logits stays near 64 MiB.
  LlamaHead(const Dims& dims, std::int64_t chunk_tokens, Kernels& kernels);

  std::uint64_t score_scratch_bytes() const;
  std::uint64_t loss_scratch_bytes() const;

  void score(const ScoreArgs& args, std::span<std::byte> scratch, Stream& stream) const;
  void loss(const LossArgs& args, std::span<std::byte> scratch, Stream& stream) const;

 private:
  struct ScoreScratch;
  struct LossScratch;
  struct Chunk;

  Chunk chunk(std::int64_t index) const;
  ScoreScratch carve_score(ScratchArena& arena) const;
  LossScratch carve_loss(ScratchArena& arena) const;

  void normalize(const ScoreArgs& args, const ScoreScratch& scratch, Stream& stream) const;
  void token_losses(const ScoreArgs& args, const Chunk& chunk, const ScoreScratch& scratch,
                    const TensorView& dlogits_cv, Stream& stream) const;
  void chunk_gradients(const LossArgs& args, const Chunk& chunk, const LossScratch& scratch,
                       Stream& stream) const;

  Dims dims_;
  std::int64_t num_chunks_;
  Kernels& kernels_;
};

}  // namespace strata
