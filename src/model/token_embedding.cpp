#include "model/token_embedding.hpp"

#include "model/scratch_arena.hpp"

namespace strata {
namespace {

std::span<std::byte> carve(ScratchArena& arena, const Dims& dims, const Kernels& kernels) {
  return arena.take_bytes(kernels.embedding_scratch_bytes(dims.t, dims.v, dims.h));
}

}  // namespace

std::uint64_t TokenEmbedding::backward_scratch_bytes() const {
  ScratchArena counter;
  carve(counter, dims_, kernels_);
  return counter.peak_bytes();
}

void TokenEmbedding::forward(TensorView weights, TensorView tokens_t, TensorView y_th,
                             Stream& stream) const {
  kernels_.embedding_forward(tokens_t, layout_.table.of(weights), y_th, stream);
}

void TokenEmbedding::backward(TensorView tokens_t, TensorView dy_th, TensorView contribution,
                              std::span<std::byte> scratch, Stream& stream) const {
  ScratchArena arena(scratch);
  kernels_.embedding_backward(tokens_t, dy_th, layout_.table.of(contribution),
                              carve(arena, dims_, kernels_), stream);
}

}  // namespace strata
