#include "model/llama_head.hpp"

#include <algorithm>

#include "model/scratch_arena.hpp"

namespace strata {
namespace {

constexpr std::int64_t logits_budget_bytes = 64 << 20;
constexpr std::int64_t min_chunk_tokens = 64;

std::int64_t chunk_tokens_within_budget(const Dims& dims) {
  const std::int64_t fitting = logits_budget_bytes / (dims.v * dtype_bytes(DType::f32));
  return std::max(fitting, min_chunk_tokens);
}

// The first `rows` rows of a matrix.
TensorView top_rows(const TensorView& matrix, std::int64_t rows) {
  return matrix.slice(0, {rows, matrix.dim(1)});
}

}  // namespace

// Tokens [begin, begin + count).
struct LlamaHead::Chunk {
  std::int64_t begin = 0, count = 0;

  TensorView of_vector(const TensorView& x_t) const { return x_t.slice(begin, {count}); }
  TensorView of_matrix(const TensorView& x_tn) const {
    return x_tn.slice(begin * x_tn.dim(1), {count, x_tn.dim(1)});
  }
};

struct LlamaHead::ScoreScratch {
  TensorView normed_th, rstd_t;
  TensorView losses_t;
  TensorView logits_cv;  // as many rows as the largest chunk has tokens
};

struct LlamaHead::LossScratch {
  ScoreScratch score;
  TensorView dlogits_cv;      // the logits themselves in f32
  TensorView dprojection_vh;  // f32, summed over chunks; empty: the contribution takes the sum
  std::span<std::byte> kernel;
};

LlamaHead::LlamaHead(const Dims& dims, std::int64_t chunk_tokens, Kernels& kernels)
    : dims_(dims),
      num_chunks_(
          ceil_div(dims.t, chunk_tokens > 0 ? chunk_tokens : chunk_tokens_within_budget(dims))),
      kernels_(kernels) {}

LlamaHead::Chunk LlamaHead::chunk(std::int64_t index) const {
  const std::int64_t begin = index * dims_.t / num_chunks_;
  return {begin, (index + 1) * dims_.t / num_chunks_ - begin};
}

LlamaHead::ScoreScratch LlamaHead::carve_score(ScratchArena& arena) const {
  ScoreScratch scratch;
  scratch.normed_th = arena.take(dims_.dtype, {dims_.t, dims_.h});
  scratch.rstd_t = arena.take(DType::f32, {dims_.t});
  scratch.losses_t = arena.take(DType::f32, {dims_.t});
  scratch.logits_cv = arena.take(DType::f32, {ceil_div(dims_.t, num_chunks_), dims_.v});
  return scratch;
}

LlamaHead::LossScratch LlamaHead::carve_loss(ScratchArena& arena) const {
  LossScratch scratch;
  scratch.score = carve_score(arena);
  const bool narrow = dims_.dtype != DType::f32;
  scratch.dlogits_cv =
      narrow ? arena.take(dims_.dtype, scratch.score.logits_cv.shape) : scratch.score.logits_cv;
  if (narrow && num_chunks_ > 1) {
    scratch.dprojection_vh = arena.take(DType::f32, {dims_.v, dims_.h});
  }
  scratch.kernel = arena.take_bytes(kernels_.rmsnorm_scratch_bytes(dims_.t, dims_.h));
  return scratch;
}

std::uint64_t LlamaHead::score_scratch_bytes() const {
  ScratchArena counter;
  carve_score(counter);
  return counter.peak_bytes();
}

std::uint64_t LlamaHead::loss_scratch_bytes() const {
  ScratchArena counter;
  carve_loss(counter);
  return counter.peak_bytes();
}

void LlamaHead::score(const ScoreArgs& args, std::span<std::byte> memory, Stream& stream) const {
  ScratchArena arena(memory);
  const ScoreScratch scratch = carve_score(arena);
  normalize(args, scratch, stream);
  for (std::int64_t i = 0; i < num_chunks_; ++i) {
    token_losses(args, chunk(i), scratch, {}, stream);
  }
  kernels_.sum(scratch.losses_t, args.loss, stream);
}

void LlamaHead::loss(const LossArgs& args, std::span<std::byte> memory, Stream& stream) const {
  ScratchArena arena(memory);
  const LossScratch scratch = carve_loss(arena);
  normalize(args.score, scratch.score, stream);
  for (std::int64_t i = 0; i < num_chunks_; ++i) {
    const TensorView dlogits_cv = top_rows(scratch.dlogits_cv, chunk(i).count);
    token_losses(args.score, chunk(i), scratch.score, dlogits_cv, stream);
    chunk_gradients(args, chunk(i), scratch, stream);
  }
  kernels_.sum(scratch.score.losses_t, args.score.loss, stream);
  if (!scratch.dprojection_vh.empty()) {
    kernels_.cast(scratch.dprojection_vh, args.contributions.projection_vh, stream);
  }
  const TensorView dnormed_th = scratch.score.normed_th;
  kernels_.rmsnorm_backward(dnormed_th, args.score.x_th, args.score.weights.norm_h,
                            scratch.score.rstd_t, args.dx_th, Accumulate::no,
                            args.contributions.norm_h, scratch.kernel, stream);
}

void LlamaHead::normalize(const ScoreArgs& args, const ScoreScratch& scratch,
                          Stream& stream) const {
  kernels_.rmsnorm_forward(args.x_th, args.weights.norm_h, dims_.epsilon, scratch.normed_th,
                           scratch.rstd_t, stream);
}

void LlamaHead::token_losses(const ScoreArgs& args, const Chunk& chunk, const ScoreScratch& scratch,
                             const TensorView& dlogits_cv, Stream& stream) const {
  const TensorView logits_cv = top_rows(scratch.logits_cv, chunk.count);
  kernels_.linear_forward(chunk.of_matrix(scratch.normed_th), args.weights.projection_vh, {},
                          logits_cv, Accumulate::no, stream);
  kernels_.cross_entropy({.logits_cv = logits_cv,
                          .labels_c = chunk.of_vector(args.labels_t),
                          .scale = args.loss_scale,
                          .losses_c = chunk.of_vector(scratch.losses_t),
                          .dlogits_cv = dlogits_cv},
                         stream);
}

// The chunk's normed rows are dead once the projection's gradient has them, and take the gradient
// of the norm's output.
void LlamaHead::chunk_gradients(const LossArgs& args, const Chunk& chunk,
                                const LossScratch& scratch, Stream& stream) const {
  const TensorView dlogits_cv = top_rows(scratch.dlogits_cv, chunk.count);
  const TensorView normed_ch = chunk.of_matrix(scratch.score.normed_th);
  const TensorView dprojection_vh =
      scratch.dprojection_vh.empty() ? args.contributions.projection_vh : scratch.dprojection_vh;
  const Accumulate accumulate = chunk.begin == 0 ? Accumulate::no : Accumulate::yes;
  kernels_.linear_backward_weight(dlogits_cv, normed_ch, dprojection_vh, accumulate, stream);
  kernels_.linear_backward_input(dlogits_cv, args.score.weights.projection_vh, normed_ch,
                                 Accumulate::no, stream);
}

}  // namespace strata
