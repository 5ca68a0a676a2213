#pragma once
// One decoder layer: x1 = x + o_proj(attention(norm(x))), y = x1 + down_proj(swiglu(norm(x1))). The
// heads of q and k may have norms of their own.
// Backward recomputes the forward from x into scratch first (all but down_proj, whose result
// nothing needs), or reads what a forward that kept it saved: the same bits. Thread contract:
// immutable after construction.

#include <cstddef>
#include <span>
#include <vector>

#include "model/dims.hpp"
#include "model/llama_layout.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata {

struct LayerForwardArgs {
  TensorView weights;  // the block's flat vector
  TensorView document_start_t;
  TensorView x_th;
  TensorView y_th;   // written
  TensorView saved;  // saved_bytes(), written whole; empty: nothing is kept
};

struct LayerBackwardArgs {
  TensorView weights;
  TensorView document_start_t;
  TensorView x_th;
  TensorView dy_th;
  TensorView dx_th;         // written
  TensorView contribution;  // flat; every parameter's gradient is written, alignment gaps are not
  TensorView saved;         // by forward; empty: recomputed
};

class DecoderLayer {
 public:
  DecoderLayer(const Dims& dims, const LayerLayout& layout, std::vector<float> inverse_frequencies,
               Kernels& kernels);

  std::uint64_t forward_scratch_bytes() const;
  std::uint64_t backward_scratch_bytes() const;
  std::uint64_t saved_bytes() const;
  std::uint64_t keeping_forward_scratch_bytes() const;
  std::uint64_t kept_backward_scratch_bytes() const;

  void forward(const LayerForwardArgs& args, std::span<std::byte> scratch, Stream& stream) const;
  void backward(const LayerBackwardArgs& args, std::span<std::byte> scratch, Stream& stream) const;

 private:
  Dims dims_;
  LayerLayout layout_;
  std::vector<float> inverse_frequencies_;
  Kernels& kernels_;
};

}  // namespace strata
