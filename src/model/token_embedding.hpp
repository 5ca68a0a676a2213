#pragma once
// The first block: token ids to vectors, and the gradient of the table.
// Thread contract: immutable after construction.

#include <cstddef>
#include <span>

#include "model/dims.hpp"
#include "model/llama_layout.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata {

class TokenEmbedding {
 public:
  TokenEmbedding(const Dims& dims, const EmbeddingLayout& layout, Kernels& kernels)
      : dims_(dims), layout_(layout), kernels_(kernels) {}

  std::uint64_t backward_scratch_bytes() const;

  void forward(TensorView weights, TensorView tokens_t, TensorView y_th, Stream& stream) const;
  // Writes the table's part of `contribution`, not its alignment gaps.
  void backward(TensorView tokens_t, TensorView dy_th, TensorView contribution,
                std::span<std::byte> scratch, Stream& stream) const;

 private:
  Dims dims_;
  EmbeddingLayout layout_;
  Kernels& kernels_;
};

}  // namespace strata
