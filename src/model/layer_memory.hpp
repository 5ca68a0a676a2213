#pragma once
// Where a decoder layer's intermediate values lie during forward and backward: in scratch, or in
// the shard that a layer saves so that its backward need not compute them again. Legend:
// kernels.hpp.

#include <array>
#include <cstddef>
#include <span>

#include "model/dims.hpp"
#include "model/scratch_arena.hpp"
#include "strata/kernels/kernels.hpp"

namespace strata {

// Heads as their projection left them, where the model norms them; else empty.
struct HeadNormValues {
  TensorView projected, rstd;  // a row for each head of each token
};

// What the attention half computes on its way from x to x1.
struct AttentionValues {
  TensorView normed_th, rstd_t;
  HeadNormValues query_norm, key_norm;
  TensorView q_tqd, k_tgd, v_tgd;
  TensorView out_tqd, lse_qt;
};

// What the feed-forward half computes on its way from x1 to the input of down_proj.
struct MlpValues {
  TensorView normed_th, rstd_t;
  TensorView gate_tf, up_tf, product_tf;
};

struct LayerForwardMemory {
  AttentionValues attention;
  MlpValues mlp;
  TensorView x1_th;
  std::span<std::byte> kernel;
};

struct LayerBackwardMemory {
  LayerForwardMemory forward;                   // recomputed, or only read
  TensorView dnormed_th;                        // of either norm's output
  TensorView dproduct_tf, dgate_tf, dup_tf;     // in the place of recomputed values
  TensorView dout_tqd, dq_tqd, dk_tgd, dv_tgd;  // in the place of the feed-forward half's
  // Of normed heads before their norm: in the place of dout, and then of dq.
  TensorView dprojected_tqd, dprojected_tgd;
};

// All in scratch. A forward's x1 needs no place: y holds it until the end.
LayerForwardMemory carve_forward(ScratchArena& scratch, const Dims& n, const Kernels& kernels);
LayerBackwardMemory carve_backward(ScratchArena& scratch, const Dims& n, const Kernels& kernels);

// What lies in neither `kernel` nor a gradient is in `saved`, at the same place for both.
LayerForwardMemory carve_keeping_forward(ScratchArena& scratch, ScratchArena& saved, const Dims& n,
                                         const Kernels& kernels);
LayerBackwardMemory carve_kept_backward(ScratchArena& scratch, ScratchArena& saved, const Dims& n,
                                        const Kernels& kernels);

// All values of a layer that keeps them, in the order in which they lie; of those that the model
// does not have, empty views.
std::array<TensorView, 17> saved_values(const LayerForwardMemory& memory);

}  // namespace strata
