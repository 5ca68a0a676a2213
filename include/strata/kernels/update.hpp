#pragma once
// One pass of an optimizer over one tile: what it reads and writes, and the formulas. Weight decay,
// bias correction, clip factor, low-precision state and the look for gradients that are not finite
// all ride in the one pass. Every engine gives the same bits for every cut into tiles.
//
// Each line below is one or more fp32 operations, each rounded once, in this order, without fma:
//
//   g = gradient * gradient_scale
//
//   adamw     p = p * (1 - learning_rate * weight_decay)              (PyTorch's; decoupled decay)
//             m = m + (g - m) * (1 - beta1)
//             v = v * beta2 + (g * g) * (1 - beta2)
//             p = p - rate * (m / (sqrt(v) + eps))
//   adam      g = g + p * weight_decay, then as adamw without its first line
//   sgd       g = g + p * weight_decay;  m = m * beta1 + g;  p = p - learning_rate * m
//   lion      p = p * (1 - learning_rate * weight_decay)
//             p = p - learning_rate * sign(m + (g - m) * (1 - beta1))
//             m = m + (g - m) * (1 - beta2)
//
// with rate = learning_rate * c / (1 - beta1^step), eps = epsilon * c, c = sqrt(1 - beta2^step):
// bias correction as PyTorch's, with c brought out of the division so that an element costs one.
// All factors are computed in double and rounded once. Elements that no range of `decays` names
// have weight_decay 0.

#include <cstdint>
#include <span>

#include "strata/core/tensor_view.hpp"

namespace strata {

enum class UpdateRule : std::uint8_t { adamw, adam, sgd, lion };

// Whether a rule keeps moment2.
constexpr bool has_moment2(UpdateRule rule) {
  return rule == UpdateRule::adamw || rule == UpdateRule::adam;
}

// Elements [begin, end) of a shard that decay.
struct DecayRange {
  std::int64_t begin = 0, end = 0;
};

struct UpdateArgs {
  UpdateRule rule = UpdateRule::adamw;

  TensorView gradient;  // f32 or bf16, read
  // f32; or u16, the low bits of a split master, whose `weight` is bf16 and read too.
  TensorView master;
  TensorView moment1;  // f32, bf16 or q8
  TensorView moment2;  // of the same dtype; not looked at where the rule has none
  TensorView weight;   // f32 or bf16, written from the new master; may be empty beside an f32 one
  // f64, one element: grows by the number of gradient elements that are not finite. Empty: nobody
  // asks. The update is applied all the same; whoever must not apply it knows from the norm.
  TensorView non_finite;

  std::int64_t first = 0;  // the tile's first element within its shard; q8: begins a block
  std::span<const DecayRange> decays;  // of the shard: sorted, disjoint

  double learning_rate = 0;
  double beta1 = 0.9,
         beta2 = 0.999;  // double: 1 - 0.999f is not 0.001. sgd: beta1 is the momentum.
  double epsilon = 1e-8;
  double weight_decay = 0;
  float gradient_scale = 1;  // the clip factor
  std::int64_t step = 1;     // 1-based, for bias correction and for the random bits

  // The random bits by which bf16 and q8 moments are rounded are a function of these two, `step`
  // and the element's index within its shard.
  std::uint64_t seed = 0;
  std::uint64_t shard = 0;  // tells shards apart
};

}  // namespace strata
