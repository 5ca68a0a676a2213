#pragma once
// The element-wise part of attention on one tile of scores, between its matrix products. Rows of a
// tile are `tile_stride` elements apart, in fp32 (products) as in the storage dtype (probabilities
// and score gradients). Thread contract: may be called from several threads at once, for different
// tiles.

#include <cstdint>

#include "strata/core/tensor_view.hpp"

namespace strata::cpu {

inline constexpr std::int64_t tile_rows = 64;
inline constexpr std::int64_t tile_columns = 512;
// Not a power of two: rows would compete for the same cache sets.
inline constexpr std::int64_t tile_stride = tile_columns + 32;

// The columns of a row whose query may see whose key: [begin, end).
struct Visible {
  std::int64_t begin = 0, end = 0;
};

// The running softmax of a block of queries over its tiles of keys. Before the first tile: maximum
// is -infinity, sum 0.
struct SoftmaxState {
  float* maximum_r;
  float* sum_r;
  float* out_rd;  // of the tiles before, relative to the maximum of that time
  std::int64_t head_dim;
};

struct ScoreTile {
  std::int64_t rows, columns;
  const Visible* visible_r;
  float scale;
  DType dtype;      // of probabilities and gradients
  float* products;  // rows of q.k
};

// Writes exp(scale * product - maximum) to `probabilities` (in place if they are f32 and the same
// memory), 0 where not visible, and brings the state up to date: out_rd then awaits the sum of this
// tile's values.
void softmax_tile(const ScoreTile& tile, void* probabilities, const SoftmaxState& state);

// out = out_rd / sum, lse = maximum + log(sum). Row r goes to `out` + r * `out_stride` elements and
// lse[r].
void finish_softmax(const SoftmaxState& state, std::int64_t rows, DType dtype, void* out,
                    std::int64_t out_stride, float* lse);

// Recomputed probabilities p and score gradients p * (dp - delta) * scale, given log-sum-exp and
// delta = sum(dout * out) of each query. Queries are the rows, or the columns (arrays then readable
// up to a multiple of 64 columns).
enum class Queries : std::uint8_t { rows, columns };
struct ScoreGradient {
  Queries queries;
  const float* lse;
  const float* delta;
  const float* dp;      // rows of dout.v
  void* probabilities;  // null: not wanted
  void* gradients;      // may be the memory of dp if f32
};
void score_gradient_tile(const ScoreTile& tile, const ScoreGradient& gradient);

// delta_qt[head * t + token] = sum over head_dim of dout * out, for tokens [begin, end).
void output_deltas(TensorView out_tqd, TensorView dout_tqd, std::int64_t begin, std::int64_t end,
                   float* delta_qt);

}  // namespace strata::cpu
