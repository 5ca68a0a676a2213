#pragma once
// Causal attention within documents, forward: a block takes 64 queries of one head and passes over
// the tiles of keys they see, with the softmax of what it has seen so far (FlashAttention-2, Dao
// 2023). Keys of the next tile are on their way while values of this one are multiplied.

#include "kernels/cuda/attention_tiles.cuh"

namespace strata::cuda {

struct AttentionForward {
  Global<const bfloat16> q_tqd, k_tgd, v_tgd;
  Global<const std::int32_t> starts;
  Global<bfloat16> out_tqd;
  Global<float> lse_qt;
  int num_tokens, query_heads, key_heads;
  float scale;
};

// Of a thread's two rows: scores are in units of scale_log2.
struct RunningSoftmax {
  float largest[2], sum[2];  // the thread's part of the sum
};

// What a thread's two queries see.
struct RowLimits {
  int query[2];
  int first[2];
};

// Scores of keys that a row does not see become minus infinity.
template <int columns>
STRATA_DEVICE void hide_keys(RowSums<columns>& scores, const RowLimits& rows, int first_key) {
  STRATA_UNROLL
  for (int n = 0; n < columns / 8; ++n) {
    STRATA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int key = first_key + 8 * n + 2 * (lane_index() % 4) + i % 2;
      if (key < rows.first[i / 2] || key > rows.query[i / 2])
        scores[n][i] = -std::bit_cast<float>(0x7f800000u);
    }
  }
}

// One row's new scores become probabilities relative to the largest so far. Returns by what earlier
// ones are to be multiplied.
template <int columns>
STRATA_DEVICE float add_scores(RowSums<columns>& scores, int half, float scale_log2,
                               RunningSoftmax& softmax) {
  float largest = -std::bit_cast<float>(0x7f800000u);
  STRATA_UNROLL
  for (int n = 0; n < columns / 8; ++n) {
    STRATA_UNROLL
    for (int i = 2 * half; i < 2 * half + 2; ++i)
      largest = scores[n][i] > largest ? scores[n][i] : largest;
  }
  largest = quad_max(largest) * scale_log2;
  largest = largest > softmax.largest[half] ? largest : softmax.largest[half];
  // A row that has seen nothing yet keeps zeros.
  const float base = largest == -std::bit_cast<float>(0x7f800000u) ? 0 : largest;
  const float factor = exp2_fast(softmax.largest[half] - base);
  float sum = 0;
  STRATA_UNROLL
  for (int n = 0; n < columns / 8; ++n) {
    STRATA_UNROLL
    for (int i = 2 * half; i < 2 * half + 2; ++i) {
      scores[n][i] = exp2_fast(std::fma(scores[n][i], scale_log2, -base));
      sum += scores[n][i];
    }
  }
  softmax.largest[half] = largest;
  softmax.sum[half] = softmax.sum[half] * factor + sum;
  return factor;
}

template <int d>
STRATA_DEVICE void scale_row(RowSums<d>& sums, int half, float factor) {
  STRATA_UNROLL
  for (int n = 0; n < d / 8; ++n) {
    sums[n][2 * half] *= factor;
    sums[n][2 * half + 1] *= factor;
  }
}

template <int d>
STRATA_DEVICE RowSums<tile_tokens> scores_of(const LeftOperand<d>& queries, const Tile<d>& keys) {
  RowSums<tile_tokens> scores{};
  STRATA_UNROLL
  for (int k = 0; k < d / 16; ++k) {
    STRATA_UNROLL
    for (int n = 0; n < tile_tokens / 16; ++n)
      add_columns<tile_tokens>(scores, n, queries[k], keys.right_of_rows(16 * n, k));
  }
  return scores;
}

// The sums over all tiles become means, and the rows' log-sum-exps are written.
template <int d>
STRATA_DEVICE void finish_rows(const AttentionForward& args, const RowLimits& rows,
                               std::int64_t head, RunningSoftmax& softmax, RowSums<d>& out) {
  STRATA_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float sum = quad_sum(softmax.sum[half]);
    const bool exists = rows.query[half] < args.num_tokens;
    scale_row<d>(out, half, exists ? 1.0f / sum : 0);
    if (exists && lane_index() % 4 == 0) {
      args.lse_qt.store(head * args.num_tokens + rows.query[half],
                        softmax.largest[half] * ln_2 + std::log(sum));
    }
  }
}

template <int d>
STRATA_KERNEL(attention_threads)
attention_forward_kernel(AttentionForward args) {
  constexpr float infinity = std::bit_cast<float>(0x7f800000u);
  const Tile<d> q_tile(0, tile_tokens), k_tile(Tile<d>::bytes(tile_tokens), tile_tokens),
      v_tile(2 * Tile<d>::bytes(tile_tokens), tile_tokens);
  const std::int64_t head = block_y();
  const int t = args.num_tokens;
  const std::int64_t key_head = head / (args.query_heads / args.key_heads);
  const auto last_tile = static_cast<int>(grid_x() - 1 - block_x());  // The longest first.
  const int first_query = last_tile * tile_tokens;
  const auto q = head_rows<d>(args.q_tqd, t, args.query_heads, head);
  const auto k = head_rows<d>(args.k_tgd, t, args.key_heads, key_head);
  const auto v = head_rows<d>(args.v_tgd, t, args.key_heads, key_head);

  const int first_tile = args.starts.load(first_query) / tile_tokens;
  start_tile<d, tile_tokens>(q_tile, q, first_query);
  start_tile<d, tile_tokens>(k_tile, k, first_tile * tile_tokens);
  commit_copies();
  const int row = warp_index() * warp_rows;
  RowLimits rows{};
  for (int half = 0; half < 2; ++half) {
    rows.query[half] = first_query + row + lane_index() / 4 + 8 * half;
    rows.first[half] = first_visible(args.starts, rows.query[half], t);
  }
  const int last_query = first_query + tile_tokens < t ? first_query + tile_tokens : t;
  const int whole_from = args.starts.load(last_query - 1);
  RunningSoftmax softmax{{-infinity, -infinity}, {0, 0}};
  RowSums<d> out{};
  finish_tiles();
  LeftOperand<d> queries{};
  STRATA_UNROLL
  for (int i = 0; i < d / 16; ++i) queries[i] = q_tile.left(row, i);

  for (int tile = first_tile; tile <= last_tile; ++tile) {
    start_tile<d, tile_tokens>(v_tile, v, tile * tile_tokens);
    commit_copies();
    RowSums<tile_tokens> scores = scores_of<d>(queries, k_tile);
    finish_tiles();
    if (tile < last_tile) start_tile<d, tile_tokens>(k_tile, k, (tile + 1) * tile_tokens);
    commit_copies();
    if (tile == last_tile || tile * tile_tokens < whole_from)
      hide_keys<tile_tokens>(scores, rows, tile * tile_tokens);
    STRATA_UNROLL
    for (int half = 0; half < 2; ++half) {
      scale_row<d>(out, half, add_scores<tile_tokens>(scores, half, args.scale * log2_e, softmax));
    }
    add_product<d, tile_tokens>(out, narrowed<tile_tokens>(scores), v_tile);
    finish_tiles();
  }
  finish_rows<d>(args, rows, head, softmax, out);
  store_rows<d>(out, q_tile, row, head_rows<d>(args.out_tqd, t, args.query_heads, head),
                first_query + row);
}

}  // namespace strata::cuda
